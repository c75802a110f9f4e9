"""Readers that yield the texts, Docs or word senses of a corpus, and functions that load pipelines."""
