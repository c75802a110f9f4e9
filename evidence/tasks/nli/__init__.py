"""Textual entailment: a converter, two configs and a model for `textcat`."""
