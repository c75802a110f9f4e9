"""Held-out perplexity of a biLM."""
