"""Reading of text files, documents, sentences and treebanks, without torch and without a pipeline."""
