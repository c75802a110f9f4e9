"""From layers to a task: listeners, scalar mixes, and the gradient back to the component.

The options of a listener, dropout among them, are `MixOptions` in `scalar_mix.py`, which applies them.
"""
