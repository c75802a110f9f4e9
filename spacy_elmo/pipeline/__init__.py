"""The biLM inside spaCy: the `elmo` component, the layers that read it, and the extensions of Doc, Span and Token."""
