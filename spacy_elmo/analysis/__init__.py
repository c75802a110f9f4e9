"""Analysis of biLMs and of the pipelines that use them: language model, probes, contexts, layer weights, figures."""
