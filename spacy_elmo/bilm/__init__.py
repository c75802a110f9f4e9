"""The network: a bidirectional LSTM language model over characters. It needs torch alone, not spaCy.

`reference.py` is the network on one page, in plain form: read it first. The formulas are also in
`converters/onnx/graph.py`, as ONNX operators. Those of the LSTM are in `kernels/` too: by steps in `plain_lstm.py` and
its gradient, one step in `cell.py`, all steps in `fused_lstm_template.h`. A change of one is a
change of all, which tests compare; CONTRIBUTING.md lists the files of each kind of change.
"""
