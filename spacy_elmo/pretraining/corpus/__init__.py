"""Prepared corpora: distinct words with their counts, and memory-mapped word ids, made from raw text."""
