"""Search for similar passages of text, by the cosine of ELMo vectors."""
