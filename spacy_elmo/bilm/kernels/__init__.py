"""Fast operations of the network in C, and equivalent torch operators that run everywhere.

In float32 on a CPU, the C functions ("kernels") compute the same bits on every processor. The module `native`
loads them, `matmul` multiplies matrices, and `fused_lstm` computes an LSTM layer. The functions of the character
CNN and of the head are called in `bilm/character_cnn.py` and `bilm/head.py`.

On a GPU, in an installation without kernels, and for most other data types, `bilm/lstm.py` computes the LSTM
layer with a loop of torch operators, and torch operators compute everything else.
"""
