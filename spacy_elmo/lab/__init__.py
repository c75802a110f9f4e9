"""Analysis of biLMs and pipelines: language model, probes, words in context, layer weights and charts."""
