"""A corpus as a pipeline reads it: numbered items, passages, and word senses where they are annotated."""
