"""The fast operations of the network, with equivalents in torch operators that run everywhere.

An LSTM layer (`bilm/lstm.py`) runs by `fused_lstm` on a CPU with AVX512, and by `plain_lstm` and `cell` elsewhere; in
training by `fused_lstm_gradient` or by `plain_lstm_gradient`. The character CNN runs by `convolution`, or by torch
operators.
"""
