"""The biLM in spaCy: the `elmo` component, model layers that use its vectors, and extensions of Doc, Span and Token."""
