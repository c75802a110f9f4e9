"""Conversion of bilm-tf's models (HDF5 files, as AllenNLP also uses, and TensorFlow checkpoints), and export."""
