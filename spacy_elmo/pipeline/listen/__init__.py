"""The use of a biLM's layers in a task: listeners, scalar mixes, and the gradients for the `elmo` component.

A listener applies a `scalar_mix` to the layers of its component. The options of the mix, such as dropout, are the
fields of `MixOptions`. The mix and its options are in `scalar_mix.py`.
"""
