"""Fast operations of the network in C, and equivalent torch operators that run everywhere.

In float32 on a CPU, the C functions ("kernels") compute the same bits on every processor. The module
`fused_lstm` computes an LSTM layer. `convolution` and `highway` compute the character CNN. `matmul` and
`softmax_terms` compute the softmax layer (`bilm/head.py`).

On a GPU, in an installation without kernels, and for most other data types, `plain_lstm` computes the LSTM
layer, and torch operators compute everything else.
"""
