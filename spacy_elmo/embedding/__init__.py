"""Computation of the vectors of a corpus, and files that store these vectors."""
