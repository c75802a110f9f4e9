"""Conversion of ELMoForManyLangs' models."""
