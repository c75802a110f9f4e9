"""Probes of the information in the layers of a biLM: word senses and parts of speech."""
