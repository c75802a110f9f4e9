"""Coreference resolution: a converter, two configs and a component."""
