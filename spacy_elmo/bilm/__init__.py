"""The network of a biLM (bidirectional LSTM language model). The package needs torch, but not spaCy.

Read `reference.py` first, because it shows the whole network in its simplest form. `converters/onnx.py`
builds the same formulas from ONNX operators. The formulas of the LSTM are also in `lstm.py` in torch operators,
and in `kernels/fused_lstm_template.h` in C. Tests compare the results. CONTRIBUTING.md lists the files for each
kind of change.
"""
