"""Thinc layers with which other components use the layers of a biLM, and pass gradients to the biLM.

A listener applies a scalar mix (a weighted sum with learned weights) to the layers of an `elmo` component.
`scalar_mix.py` contains the scalar mix and its options, such as dropout.
"""
