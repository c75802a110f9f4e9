"""Semantic roles of given predicates: converter, pair of configs, component."""
