"""The biLM in spaCy: the `elmo` component, thinc layers that use the vectors of the biLM, and extension
attributes."""
