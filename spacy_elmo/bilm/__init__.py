"""The network: a bidirectional LSTM language model over characters. It needs torch alone, not spaCy.

Its formulas are also in `reference.py`, in plain form, and in `converters/onnx/graph.py`, as ONNX operators. A change
of one is a change of all three, which tests compare.
"""
