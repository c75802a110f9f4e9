"""Readers of text files, documents, sentences and treebanks. These readers need no torch and no spaCy
pipeline."""
