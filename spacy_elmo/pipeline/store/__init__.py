"""Storage of computed biLM layers on Docs, in a cache for training, and in files."""
