"""Vectors of a corpus on disk: compute, write and read them."""
