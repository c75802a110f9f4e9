"""Models of ELMoForManyLangs."""
