"""Search for similar passages of text. The similarity of two passages is the cosine of their ELMo vectors."""
