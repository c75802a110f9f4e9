"""Text files, documents, sentences and treebanks: reading them needs neither torch nor a pipeline."""
