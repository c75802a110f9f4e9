"""The computation of context-free vectors: character ids, the character CNN, token encoders and their cache."""
