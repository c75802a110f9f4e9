"""Vectors of a corpus on disk: computing, writing and reading them."""
