"""From Docs to layers: spans, sequences, batches and the biLM inside a thinc model."""
