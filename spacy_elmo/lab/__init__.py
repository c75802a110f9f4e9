"""Use and analysis of biLMs and pipelines: embed, search, language model, probes, words in context, layer charts, the
page of `explore`, and packages of weights."""
