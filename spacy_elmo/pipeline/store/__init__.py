"""Storage of computed layers: on Docs, in a cache for training, and in files."""
