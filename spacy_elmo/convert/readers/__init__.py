"""Readers of foreign file formats, none of which runs what is in a file."""
