"""Similarity search for passages of text, by their contextual vectors."""
