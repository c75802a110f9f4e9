"""Search for weights by name: bundled, installed and public weights.

Public weights are downloaded only if the user asks for it.
"""
