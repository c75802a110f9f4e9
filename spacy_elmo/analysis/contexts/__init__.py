"""Uses of a word in context: nearest neighbors and maps."""
