"""Functions that find weights of biLMs by name: bundled weights, installed weights and public models.

Public models are downloaded only if the user asks for it.
"""
