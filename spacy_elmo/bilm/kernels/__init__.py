"""Fast operations of the network in C, and equivalent torch operators that run everywhere.

In float32 on a CPU, kernels in C compute the same bits on every processor. The module `fused_lstm` computes
an LSTM layer (`bilm/lstm.py`), in training together with `fused_lstm_gradient`; `convolution` and `highway`
compute the character CNN; `matmul` and `softmax_terms` compute the head. On a GPU, without the kernels, and
for most other number types, `plain_lstm` and `cell` compute the LSTM layer, and torch operators compute
everything else.
"""
