"""The options of a mix of layers, each in one place: its name, type, default and reason.

A listener has a mix, and so has `ElmoTok2Vec`. The options take effect in `scalar_mix.py`.
"""

from dataclasses import dataclass
from typing import Literal

from ..config_only import ConfigOnly

LayerChoice = Literal["mix", "average", "top"] | int


@dataclass(frozen=True)
class MixOptions(ConfigOnly):
    """Options of a mix, which combines the layers to one vector per token. They are not saved with the model,
    because the config contains them, and an old value would override it.

    Raises:
        ValueError: some values are impossible; the message names all of them.
    """

    layers: LayerChoice = "mix"
    """"mix": γ Σ softmax(s)_l h_l with learnt s and γ; "average"; "top"; or the number of one layer, 0 being the
    context-free one."""
    grad_factor: float = 1.0
    """Factor of the gradient that flows back into the biLM, not of those of s and γ. It weighs this listener against
    the others of the same biLM; Adam cancels a factor that all gradients of a parameter share."""
    dropout: float = 0.0
    """Share of the output's numbers that are set to zero in training. `[training] dropout` does not change it."""
    l2: float = 0.0
    """The paper's λ: adds λ Σ s² to the loss of each batch, which draws the mix towards the average. The loss is a
    mean in the paper but a sum over words in most components of spaCy, so that a λ of 1 has hardly any effect."""
    layer_norm: bool = False
    """Normalize each token's vector in each layer over its width, without a learnt scale. bilm-tf and AllenNLP
    take mean and variance over all words of the batch, which makes a vector depend on its batch mates."""

    def __post_init__(self) -> None:
        problems = []
        if isinstance(self.layers, str) and self.layers not in ("mix", "average", "top"):
            problems.append(
                f'layers = {self.layers!r} (must be "mix", "average", "top" or a number)'
            )
        if not 0 <= self.dropout < 1:
            problems.append(f"dropout = {self.dropout} (must be at least 0 and below 1)")
        if self.l2 < 0:
            problems.append(f"l2 = {self.l2} (must be 0 or more)")
        if problems:
            raise ValueError("Impossible mix of layers: " + "; ".join(problems))
