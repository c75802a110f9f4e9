"""Conversion of the biLM in a trained AllenNLP model, and export of a biLM to AllenNLP's format."""
