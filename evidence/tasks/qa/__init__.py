"""Extractive question answering: a converter, two configs and a component."""
