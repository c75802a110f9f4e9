"""From layers to a task: listeners, scalar mixes, and the gradient back to the component.

The options of a listener, dropout among them, are the fields of `MixOptions` in `mix_options.py`. They take effect in
`scalar_mix.py`: a listener is its upstream's layers followed by a `scalar_mix`.
"""
