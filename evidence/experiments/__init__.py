"""The experiments: their plan, its execution and the report."""
