"""Tiny random weights files, and a pipeline on one of them."""

from tests.pipeline.conftest import nlp, other_weights, weights  # noqa: F401
