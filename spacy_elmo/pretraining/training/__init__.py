"""The parts of the training loop: initial weights, gradients, optimizers, checkpoints and processes."""
