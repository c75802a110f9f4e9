"""The use of layers in a task: listeners, scalar mixes, and the gradient back to the component.

A listener applies a `scalar_mix` to the layers of its component. The options of the mix, such as dropout, are the
fields of `MixOptions`. Both are in `scalar_mix.py`.
"""
