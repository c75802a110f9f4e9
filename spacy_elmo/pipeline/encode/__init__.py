"""The computation of biLM layers for Docs: spans, sequences, batches, and the biLM inside a thinc model."""
