"""Readers of text files, documents and treebanks, and a sentence splitter. No module needs torch or a
pipeline."""
