"""Networks that take turns on the same sentences, each in a process of its own: the biLM and its rivals."""
