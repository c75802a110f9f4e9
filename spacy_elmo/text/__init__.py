"""Readers of text files, documents, sentences and treebanks, which need neither torch nor a pipeline."""
