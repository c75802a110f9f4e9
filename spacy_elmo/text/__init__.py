"""Readers of text files, documents and sentences. They need no torch and no pipeline."""
