"""Readers of corpora, which yield texts, lists of words, Docs or word senses; and functions that load
pipelines."""
