"""Readers of corpora (lines, records, sentences, word senses), and functions that load pipelines."""
