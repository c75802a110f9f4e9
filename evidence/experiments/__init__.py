"""The experiments: their plan, their execution and their report."""
