"""Training loop and its parts: initial weights, gradients, optimizers, checkpoints, processes."""
