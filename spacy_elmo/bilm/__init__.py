"""The network of a biLM (bidirectional LSTM language model). The package needs torch, but not spaCy.

Read `reference.py` first, because it shows the whole network in its simplest form. `converters/onnx.py`
builds the same formulas from ONNX operators. The formulas of the LSTM are also in `lstm.py` in torch operators,
and in `kernels/fused_lstm_template.h` in C. Tests compare the results. CONTRIBUTING.md lists the files for each
kind of change.

In this package and its callers, a *type* is a distinct word (a string), and a *word* is an occurrence of a type in a
sentence. `type_of_word` has the index of the type of each word of a batch, sentence after sentence. A *token* is what
spaCy calls so, whitespace included. A *place* is the index of a word in its batch, and a *position* an index in the
concatenated sequences `<S> w1 .. wn </S>`.
"""
