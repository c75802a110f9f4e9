"""Readers of foreign file formats; none of them executes code in a file."""
