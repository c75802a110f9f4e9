"""A comparison of the biLM and its rivals, which take turns on the same sentences, each in its own process."""
