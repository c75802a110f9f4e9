"""Similarity search for passages, by their contextual vectors."""
