"""Conversion of bilm-tf's models (TensorFlow checkpoints, and HDF5 files, which AllenNLP also reads), and export."""
