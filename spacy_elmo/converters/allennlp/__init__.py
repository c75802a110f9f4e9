"""Conversion of the ELMo inside a trained AllenNLP model, and export to AllenNLP's parameters."""
