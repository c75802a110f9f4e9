"""Probes of the layers of a biLM for word senses and parts of speech."""
