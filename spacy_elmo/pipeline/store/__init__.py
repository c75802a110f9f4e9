"""Storage of computed layers: on Docs, in the cache of training, and in files."""
