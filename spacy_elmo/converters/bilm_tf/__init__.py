"""Conversion of bilm-tf's models (TensorFlow checkpoints or HDF5 files), and export to HDF5 files, which
AllenNLP can also read."""
