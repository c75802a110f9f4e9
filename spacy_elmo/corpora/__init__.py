"""Readers of corpora as the input of pipelines: numbered items, passages, and annotated word senses."""
