"""The biLM in spaCy: the `elmo` component, the thinc layers that use its vectors, and extension attributes."""
