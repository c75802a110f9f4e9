"""Readers of foreign file formats. No reader executes code in a file."""
