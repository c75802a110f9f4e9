"""Weights by name: bundled, installed and public ones. Public weights are only downloaded if the user asks for it."""
