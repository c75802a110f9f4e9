"""The scalar mix, a thinc layer: a weighted sum of a biLM's layers, with weights that are learned for a task.

Each listener and each `ElmoTok2Vec` has its own scalar mix.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from thinc.api import Model
from thinc.types import Floats1d, Floats2d, Floats3d

from ..not_saved import NotSaved

LayerChoice = Literal["mix", "average", "top"] | int

_NAME = "elmo-mix"


@dataclass(frozen=True)
class MixOptions(NotSaved):
    """Options of a scalar mix, which combines the layers of a biLM into one vector per token. These options
    are not saved with the model, because saved options would override the config."""

    layers: LayerChoice = "mix"
    """"mix" learns a softmax weight per layer and a scale, as in the paper. Other values: "average", "top", or the
    number of a layer (layer 0 has no context)."""
    dropout: float = 0.0
    """Dropout rate of the vectors in training. `[training] dropout` does not change it."""
    l2: float = 0.0
    """Strength of the regularization that pulls the layer weights towards the average, λ in the paper. It needs larger
    values than there, because spaCy's losses are sums over the words of a batch: on the sample corpus, 1 has no visible
    effect, and 1000 keeps the average."""

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: it must be at least 0 and below 1")


def scalar_mix(options: MixOptions) -> Model[list[Floats3d], list[Floats2d]]:
    """Build a thinc layer that computes the weighted sum γ Σ_l softmax(s)_l h_l of the layers h_l of each
    token (Peters et al. 2018, eq. 1).

    The input is (layers, n_tokens, width) per Doc; the output is (n_tokens, width) per Doc. The initial mix
    is the average. The parameter "scalars" stores s. The parameter "scale" stores γ - 1, because spaCy's
    optimizer decays every parameter towards 0.
    """
    params: dict[str, Any] = {"scalars": None, "scale": None} if options.layers == "mix" else {}
    return Model(
        _NAME,
        forward,
        init=init,
        dims={"nL": None, "nO": None},
        params=params,
        attrs={"options": options},
    )


def init(model: Model, X: list[Floats3d] | None = None, Y: Any = None) -> None:
    """Set the number of layers and the width from the layers of sample Docs, which may have no tokens."""
    if not X:
        return
    layers, _, width = X[0].shape
    model.set_dim("nL", layers)
    model.set_dim("nO", width)
    _chosen_layer(model, layers)  # raises an error if the biLM has no such layer
    if "scalars" in model.param_names:
        model.set_param("scalars", model.ops.alloc1f(layers))
        model.set_param("scale", model.ops.alloc1f(1))


def forward(
    model: Model[list[Floats3d], list[Floats2d]], X: list[Floats3d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Apply the scalar mix to the layers of Docs; see `mix_layers`."""
    return mix_layers(model, X, is_train)


def mix_layers(
    mix: Model[list[Floats3d], list[Floats2d]],
    layers: list[Floats3d],
    is_train: bool,
    *,
    trained: bool = True,
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d]]]:
    """Compute the weighted sums of the layers of Docs in float32, even if the layers are float16. In training,
    apply the dropout of the mix to the result.

    Args:
        trained: False: the layers come from a frozen biLM, so their gradient is not computed, which saves time.

    Returns:
        The mixed vectors of each Doc, (n_tokens, width), and the function for the backward pass, which returns the
        gradient of the layers; an empty list if it is not computed.
    """
    if not layers:
        return [], lambda d_mixed: []
    _check_shapes(mix, layers)
    xp, dropout = mix.ops.xp, mix.attrs["options"].dropout
    # One large operation is faster than one operation per Doc.
    flat: Any = layers[0] if len(layers) == 1 else xp.concatenate(layers, axis=1)
    if flat.dtype == "float16":
        flat = flat.astype("float32")
    bounds = list(itertools.pairwise(itertools.accumulate((x.shape[1] for x in layers), initial=0)))
    mixed, unmix = _mix(mix, flat, trained)
    mask: Any = 1.0
    if is_train and dropout:
        mask = mix.ops.get_dropout_mask(mixed.shape, dropout)
        mixed = mixed * mask

    def backprop(d_mixed: list[Floats2d]) -> list[Floats3d]:
        d_flat = unmix(xp.concatenate(d_mixed, axis=0) * mask)
        return [] if d_flat is None else [d_flat[:, start:end] for start, end in bounds]

    return [mixed[start:end] for start, end in bounds], backprop


def is_mix(model: Model) -> bool:
    """Return True if a thinc layer is a `scalar_mix`."""
    return model.name == _NAME


def mix_weights(mix: Model[list[Floats3d], list[Floats2d]]) -> tuple[Floats1d, Any]:
    """Return the weight of each layer in a scalar mix, (layers,), and the factor γ by which the weighted sum
    is multiplied. The sum of the weights is 1."""
    layers, xp = _number_of_layers(mix), mix.ops.xp
    if (chosen := _chosen_layer(mix, layers)) is not None:
        return xp.eye(layers, dtype="f")[chosen], 1.0
    scalars: Any = mix.ops.alloc1f(layers)
    gamma = 1.0
    if "scalars" in mix.param_names:
        scalars, gamma = mix.get_param("scalars"), 1 + mix.get_param("scale")[0]
    weights = xp.exp(scalars - scalars.max())
    return weights / weights.sum(), gamma


def _number_of_layers(mix: Model) -> int:
    layers = mix.maybe_get_dim("nL")
    if layers is None:
        raise ValueError("The mix of the biLM's layers has no weights yet: call nlp.initialize()")
    return layers


def _check_shapes(mix: Model, X: list[Floats3d]) -> None:
    """Check the shape of the layers, because a mix without learned weights would accept the layers of any
    biLM, and the next thinc layer would fail with a misleading error."""
    layers, width = _number_of_layers(mix), mix.get_dim("nO")
    for x in X:
        if (len(x), x.shape[2]) != (layers, width):
            raise ValueError(
                f"A component was trained with {layers} layers of width {width}, but a Doc has {len(x)} layers of width"
                f" {x.shape[2]} from another biLM. If the component comes from another pipeline, let it bring its own"
                " biLM: call replace_listeners in that pipeline before add_pipe(..., source=...). If you have set the"
                " layers of the Doc, remove them: doc._.elmo_layers = None. If elmo has another biLM now, train the"
                " component again"
            )


def _chosen_layer(mix: Model, layers: int) -> int | None:
    choice = mix.attrs["options"].layers
    if choice == "top":
        return layers - 1
    if isinstance(choice, str):
        return None
    if not -layers <= choice < layers:
        raise ValueError(
            f"layers = {choice}, but the biLM has {layers} layers, 0 to {layers - 1} (0: the context-free vectors)."
            " Choose one of these numbers"
        )
    return choice % layers


def _mix(mix: Model, h: Floats3d, trained: bool) -> tuple[Floats2d, Callable[[Floats2d], Any]]:
    """Return the mix, (tokens, width), of the layers h, (layers, tokens, width), and the function for the
    backward pass."""
    xp: Any = mix.ops.xp
    weights, gamma = mix_weights(mix)
    chosen = _chosen_layer(mix, len(h))
    # Not numpy's products, whose threads wait for each other on a busy machine.
    mean: Any = xp.einsum("l,ltw->tw", weights, h) if chosen is None else h[chosen]

    def backprop(dy: Floats2d) -> Floats3d | None:
        if "scalars" in mix.param_names:
            # The gradient with respect to the softmaxed weights.
            d_weights = gamma * xp.tensordot(h, dy, axes=((1, 2), (0, 1)))
            d_scalars = weights * (d_weights - (weights * d_weights).sum())
            l2 = mix.attrs["options"].l2
            mix.inc_grad("scalars", d_scalars + 2 * l2 * mix.get_param("scalars"))
            mix.inc_grad("scale", (mean * dy).sum().reshape(1))
        return (gamma * weights)[:, None, None] * dy if trained else None

    # No view, because `h` may belong to the cache or to a Doc, and the next layer may write into its input.
    return gamma * mean, backprop
