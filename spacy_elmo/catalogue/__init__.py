"""Functions that find weights of biLMs by name: bundled weights, weights in installed packages, and public
models.

Public models are downloaded only if the user asks for it.
"""
