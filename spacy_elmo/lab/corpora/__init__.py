"""Readers of corpora (lines, records, sentences, word senses), and loading of pipelines."""
