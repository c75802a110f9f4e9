"""Textual entailment: converter, pair of configs, component."""
