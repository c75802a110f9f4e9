"""The network: a bidirectional LSTM language model over characters. It needs torch, but not spaCy.

Read `reference.py` first: it is the whole network on one page. `converters/onnx/graph.py` has the same formulas as ONNX
operators. The formulas of the LSTM are also in `kernels/`: a loop over steps in `plain_lstm.py`, one step in `cell.py`,
and all steps in `fused_lstm_template.h`. If you change one of them, change all; tests compare them. CONTRIBUTING.md
lists the files for each kind of change.
"""
