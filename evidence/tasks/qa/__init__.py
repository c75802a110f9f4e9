"""Extractive question answering: converter, pair of configs, component."""
