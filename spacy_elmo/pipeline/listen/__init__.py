"""The use of a biLM's layers by other components: listeners, scalar mixes, and the gradients for the biLM.

A listener applies a scalar mix to the layers of an `elmo` component. `scalar_mix.py` contains the scalar mix
and its options (`MixOptions`), such as dropout.
"""
