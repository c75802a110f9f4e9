"""Shared parts of the benchmarks: text, model sizes, data types, and the memory and processor of a process."""
