"""Prepared corpora: types, counts and memory-mapped ids, made from raw text."""
