"""The uses of a word in context: nearest neighbours and maps."""
