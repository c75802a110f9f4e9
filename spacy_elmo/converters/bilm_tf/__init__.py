"""Conversion of bilm-tf's models, HDF5 files (which AllenNLP serves too) and TensorFlow checkpoints, and export."""
