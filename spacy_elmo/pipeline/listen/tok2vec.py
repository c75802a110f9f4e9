"""`spacy-elmo.ElmoTok2Vec.v1`: a thinc layer with its own biLM and scalar mix. `nlp.replace_listeners`
replaces listeners by this layer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ...bilm.config import Precision
from ..encode.encoder import configure, is_initializing, layers_and_width, shim_of, zeros
from ..factory_options import BiLMOptions, SpanGetter, Start, StoredDType
from .scalar_mix import LayerChoice, MixOptions, mix_layers, scalar_mix

_ARCHITECTURE = "spacy-elmo.ElmoTok2Vec.v1"
_LISTENER = "spacy-elmo.ElmoListener.v1"


def ElmoTok2Vec_v1(
    *,
    bilm: Model[list[Doc], list[Floats3d]],
    weights: str | None,
    frozen: bool = True,
    lr_scale: float = 1.0,
    get_spans: SpanGetter | None = None,
    dtype: StoredDType = "float32",
    start: Start = "zero",
    precision: Precision = "float32",
    layers: LayerChoice = "mix",
    dropout: float = 0.0,
    l2: float = 0.0,
    width: int | None = None,
) -> Model[list[Doc], list[Floats2d]]:
    """Build a layer with a biLM of its own and the learned average of its layers, (n_tokens, width) per Doc
    (docs/consumers.md#a-bilm-inside-the-component). The other options are those of `elmo` and of
    `spacy-elmo.ElmoListener.v1`, with the same defaults.

    Args:
        bilm: a `spacy-elmo.BiLM.v1`.
        weights: name of a biLM, or path of a weights file. null: random weights.
        width: width of the vectors. null: the width of the biLM. Set it in an entity linker whose only input is this
            layer.
    """
    configure(bilm, BiLMOptions(weights, frozen, lr_scale, get_spans, dtype, start, precision))
    return _chain(bilm, scalar_mix(MixOptions(layers, dropout, l2)), width)


def _chain(bilm: Model, mix: Model, width: int | None) -> Model[list[Doc], list[Floats2d]]:
    return Model("elmo-tok2vec", forward, init=init, dims={"nO": width}, layers=[bilm, mix])


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Load the biLM, and set the number of layers and the width of the scalar mix to the biLM's values."""
    bilm, mix = model.layers
    bilm.initialize()
    layers, width = layers_and_width(bilm)
    if model.maybe_get_dim("nO") not in (None, width):
        raise ValueError(
            f"ElmoTok2Vec(width={model.get_dim('nO')}), but its biLM has layers of width {width}. Set width = {width}"
        )
    model.set_dim("nO", width)
    mix.initialize(X=[model.ops.alloc3f(layers, 0, width)])


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Compute the biLM layers of Docs, and apply the scalar mix. If the biLM is trained, the backward pass
    includes the biLM. While thinc initializes a model, which needs only shapes, the layers are zeros."""
    bilm, mix = model.layers
    if is_initializing():
        return mix_layers(mix, zeros(bilm, docs), is_train, trained=False)
    layers, backward = bilm(docs, is_train)
    mixed, unmix = mix_layers(mix, layers, is_train, trained=not shim_of(bilm).options.frozen)

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        if d_layers := unmix(d_mixed):
            backward(d_layers)
        return []

    return mixed, backprop


def replace_listener(copied: Model, listener: Model, upstream: Any) -> Model:
    """Build the `ElmoTok2Vec_v1` that replaces a listener in `nlp.replace_listeners`, from the copy of the `elmo`
    component's biLM that spaCy has made, and a copy of the listener's scalar mix."""
    return _chain(copied, listener.layers[0].copy(), listener.maybe_get_dim("nO"))


@dataclass
class ReplaceListenerConfig:
    """Callable that returns the config of the `ElmoTok2Vec_v1` that replaces a listener.

    spaCy finds this callable in `model.attrs["replace_listener_cfg"]` of an `elmo` component. The callable
    stores the options of the component, because spaCy passes only the `model` blocks of the config.
    """

    upstream: str
    """Name of the `elmo` component to which the listener is linked."""
    options: dict[str, Any] = field(default_factory=dict)
    """The `BiLMOptions` of the `elmo` component, with the config block of `get_spans` in place of its function."""

    def __call__(self, bilm: dict[str, Any], consumer: dict[str, Any]) -> dict[str, Any]:
        """Return the config block of the `ElmoTok2Vec_v1` that replaces a listener.

        Args:
            bilm: the `model` block of the `elmo` component.
            consumer: the `tok2vec` block of the component with the listener, at any depth. spaCy does not say which
                of several listeners it replaces, so it must be the first in the block: pass the paths to
                `nlp.replace_listeners` in the order of the config.
        """
        listener = next(_listener_blocks(consumer, (self.upstream, "*")), {})
        mix = {
            name: listener.get(name, default)
            for name, default in {**asdict(MixOptions()), "width": None}.items()
        }
        return {"@architectures": _ARCHITECTURE, "bilm": dict(bilm), **self.options, **mix}


def _listener_blocks(block: Any, upstreams: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(block, Mapping):
        return
    if block.get("@architectures") == _LISTENER and block.get("upstream", "*") in upstreams:
        yield block
    for inner in block.values():
        yield from _listener_blocks(inner, upstreams)
