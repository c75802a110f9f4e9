"""The plan of the experiments, what carries it out, and the report."""
