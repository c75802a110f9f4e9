"""The ELMo inside a model that AllenNLP trained, and export by its parameter names."""
