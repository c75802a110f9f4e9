"""The network: a bidirectional LSTM language model over characters. It needs torch alone, not spaCy."""
