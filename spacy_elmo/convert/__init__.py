"""Weights of other ELMo programs to ours, and back."""
