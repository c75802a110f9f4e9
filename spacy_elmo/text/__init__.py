"""Readers of text files, documents and treebanks, and a sentence splitter. They need no spaCy pipeline."""
