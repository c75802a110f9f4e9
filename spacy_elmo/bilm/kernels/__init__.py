"""The fast operations of the network, with equivalents in torch operators that run everywhere.

An LSTM layer (`bilm/lstm.py`) runs by `fused_lstm` on a CPU with AVX512, and by `recurrence` and `cell` elsewhere; in
training by `fused_gradient` or by `gradient`. The character CNN runs by `convolution`, or by torch operators.
"""
