"""From layers to a task: listeners, scalar mixes, and the gradient back to the component.

A listener is its upstream's layers followed by a `scalar_mix`, whose options, dropout among them, are the fields of
`MixOptions`, both in `scalar_mix.py`.
"""
