"""The biLM in spaCy: the `elmo` component, thinc layers that use its vectors, and extension attributes."""
