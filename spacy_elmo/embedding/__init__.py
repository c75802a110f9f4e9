"""Computation of the vectors of a corpus, and files in which they are stored."""
