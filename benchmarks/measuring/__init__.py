"""The text and the model sizes of the benchmarks, and the memory of a process."""
