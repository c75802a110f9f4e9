"""Layers after they are computed: on Docs, in the cache of training, and in files."""
