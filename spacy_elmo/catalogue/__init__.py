"""Weights by name: bundled, installed and public ones, of which the last are only downloaded on a user's request."""
