"""Storage of computed biLM layers on Docs, and in a cache for training."""
