"""Readers of text files, documents, sentences and treebanks. They need no torch and no pipeline."""
