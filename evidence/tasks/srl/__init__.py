"""Semantic role labelling for given predicates: a converter, two configs and a component."""
