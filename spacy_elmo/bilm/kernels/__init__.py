"""Fast operations of the network in C, and equivalent torch operators that run everywhere.

In float32 on a CPU, the kernels in C compute the same bits on every processor. The module `fused_lstm`
computes an LSTM layer (`bilm/lstm.py`), and `fused_lstm_gradient` is the autograd function of this layer for
training. `convolution` and `highway` compute the character CNN. `matmul` and `softmax_terms` compute the
head.

Other modules replace the kernels on a GPU, in an installation without kernels, and for most other data
types. There `plain_lstm` and `cell` compute the LSTM layer, and torch operators compute everything else.
"""
