"""A corpus to vectors on disk."""
