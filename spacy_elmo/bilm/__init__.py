"""The network of a biLM: a bidirectional LSTM language model over characters. The package needs torch, but
not spaCy.

Read `reference.py` first, because it shows the whole network on one page. `converters/onnx/graph.py` builds
the same formulas from ONNX operators. The formulas of the LSTM are also in `kernels/`: a loop over steps in
`plain_lstm.py`, one step in `cell.py`, and all steps in `fused_lstm_template.h`. If you change a formula in
one of these files, change it in all of them; tests compare the results. CONTRIBUTING.md lists the files for
each kind of change.
"""
