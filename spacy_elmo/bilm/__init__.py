"""The network of a biLM (bidirectional LSTM language model). The package needs torch, but not spaCy.

Read `reference.py` first, because it shows the whole network in its simplest form. `converters/onnx.py`
builds the same formulas from ONNX operators. The formulas of the LSTM are also in `kernels/`: in torch
operators in `plain_lstm.py`, and in C in `fused_lstm_template.h`. Tests compare the results. CONTRIBUTING.md
lists the files for each kind of change.
"""
