"""Analysis of the occurrences of a word in a corpus: nearest neighbors and 2-D maps."""
