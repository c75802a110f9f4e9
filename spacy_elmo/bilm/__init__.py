"""The network: a bidirectional LSTM language model over characters. Torch only, knows nothing of spaCy."""
