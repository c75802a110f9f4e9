"""Shared parts of the benchmarks: text, model sizes, number types, and the memory and processor of a process."""
