"""Models of bilm-tf, and of AllenNLP files with its layout: HDF5 weights and TensorFlow checkpoints."""
