"""Corpora as the input of pipelines: numbered items, passages, and word senses where they are annotated."""
