"""Context-free word vectors: character ids, the character CNN, and token encoders with a cache of vectors."""
