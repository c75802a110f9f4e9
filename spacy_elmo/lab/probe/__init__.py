"""Probes that measure how much each layer of a biLM knows about word senses and parts of speech."""
