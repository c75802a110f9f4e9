"""Computation of the ELMo vectors of a corpus, and files that store these vectors."""
