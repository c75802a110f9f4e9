"""The computation of layers from Docs: spans, sequences, batches and the biLM inside a thinc model."""
