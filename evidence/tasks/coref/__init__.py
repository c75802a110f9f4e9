"""Coreference: converter, pair of configs, component."""
