"""The fast operations of the network, with equivalents in torch operators that run everywhere.

What is computed in float32 on a CPU runs by kernels in C, whose results are the same bits on every processor: an LSTM
layer (`bilm/lstm.py`) by `fused_lstm`, in training by `fused_lstm_gradient`; the character CNN by `convolution` and
`highway`; the head by `matmul` and `softmax_terms`. Without them, on a GPU, and mostly in fewer bits, the layer runs by
`plain_lstm` and `cell`, and the rest by torch operators.
"""
