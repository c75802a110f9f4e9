"""Pretraining: raw text -> prepared corpus -> training loop -> weights file."""
