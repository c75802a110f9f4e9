"""The computation of biLM layers for Docs: Docs are split into spans, the spans are sorted into batches, and
a thinc model with the biLM computes the layers."""
