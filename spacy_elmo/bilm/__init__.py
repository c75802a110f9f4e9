"""The network of a biLM (bidirectional LSTM language model). The package needs torch, but not spaCy.

Read `reference.py` first, because it shows the whole network in its simplest form. `converters/onnx/graph.py`
builds the same formulas from ONNX operators. The formulas of the LSTM are also in `kernels/`: as a loop over
time steps in `plain_lstm.py` (for training: `plain_lstm_gradient.py`), for a single time step in `cell.py`,
and as a loop in C in `fused_lstm_template.h`. If you change a formula in one of these files, change it in all
of them; tests compare the results. CONTRIBUTING.md lists the files for each kind of change.
"""
