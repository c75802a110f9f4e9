"""Readers of corpora (lines, records, sentences, annotated word senses), and functions that load pipelines."""
