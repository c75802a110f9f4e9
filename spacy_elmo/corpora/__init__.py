"""Corpora as pipelines read them: numbered items, passages, and word senses where they are annotated."""
