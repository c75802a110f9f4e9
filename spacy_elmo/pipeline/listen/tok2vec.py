"""`spacy-elmo.ElmoTok2Vec.v1`: a biLM and its mix inside one consumer, and the replacement of a listener by it."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..config_only import ConfigOnly
from ..encode.encoder import configure, layers_and_width, shim_of
from ..options import BiLMOptions, flatten_options
from .batch import ListenerBatch
from .listener import mix_of
from .mix_options import MixOptions
from .scalar_mix import scalar_mix

_ARCHITECTURE = "spacy-elmo.ElmoTok2Vec.v1"
_LISTENER = "spacy-elmo.ElmoListener.v1"


@flatten_options
def ElmoTok2Vec_v1(
    *, bilm: Model[list[Doc], list[Floats3d]], bilm_options: BiLMOptions, mix_options: MixOptions
) -> Model[list[Doc], list[Floats2d]]:
    """Build a layer with a biLM of its own and a mix: (n_tokens, width) per Doc, from the Doc's words alone.

    Args:
        bilm: a `spacy-elmo.BiLM.v1`.
        bilm_options: every field is an argument, as in the `elmo` component. `unfreeze_at` counts the consumer's steps;
            a biLM that `replace_listeners` copies keeps its count until the pipeline is saved and loaded.
        mix_options: every field is an argument, as in `ElmoListener_v1`.
    """
    configure(bilm, bilm_options)
    return _chain(bilm, scalar_mix(mix_options))


@dataclass
class Initialization(ConfigOnly):
    """The Docs of `initialize`, until the first step of training: their layers are zeros."""

    zeros: ListenerBatch | None = None


def _chain(bilm: Model, mix: Model) -> Model[list[Doc], list[Floats2d]]:
    return Model(
        "elmo-tok2vec",
        forward,
        init=init,
        dims={"nO": mix.maybe_get_dim("nO")},
        layers=[bilm, mix],
        attrs={"initializing": Initialization()},
    )


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Load the biLM and set the shape to its shape."""
    bilm, mix = model.layers
    bilm.initialize()
    layers, width = layers_and_width(bilm)
    model.set_dim("nO", width)
    mix.initialize(X=[model.ops.alloc3f(layers, 0, width)])
    zeros = ListenerBatch.zeros(X, model.ops, layers, width) if X else None
    model.attrs["initializing"].zeros = zeros


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Compute the layers and mix them."""
    bilm, mix = model.layers
    initialization = model.attrs["initializing"]
    if initialization.zeros is not None and not is_train:
        zeros = [initialization.zeros.layers_of(doc) for doc in docs]
        if all(layers is not None for layers in zeros):
            return mix.predict(zeros), lambda d_mixed: []
    initialization.zeros = None
    layers, backprop_bilm = bilm(docs, is_train)
    mixed, unmix = mix(layers, is_train)

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        d_layers = unmix(d_mixed, inputs=shim_of(bilm).trainable is not None)
        if d_layers:
            backprop_bilm(d_layers)
        return []

    return mixed, backprop


def replace_listener(copied: Model, listener: Model, upstream: Any) -> Model:
    """Build what replaces a listener (`model.attrs["replace_listener"]`): the copied biLM and the listener's mix."""
    return _chain(copied, mix_of(listener).copy())


@dataclass
class ReplaceListenerConfig:
    """The function that writes the config of a replaced listener (`model.attrs["replace_listener_cfg"]`).

    spaCy passes it the `model` blocks only, so the component's other options are stored in it.
    """

    upstream: str
    """The name of the component."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options of its biLM, as in the config."""
    any_upstream: bool = True
    """True if a listener to "*" is linked to it. Otherwise those in a config belong to another elmo."""

    def __call__(self, bilm: dict[str, Any], consumer: dict[str, Any]) -> dict[str, Any]:
        """Return the block of an `ElmoTok2Vec_v1` that replaces a listener.

        Args:
            bilm: the `model` block of the component.
            consumer: the block of the consumer that contains the listener, at any depth. spaCy does not say which
                listener it replaces, so it must be the first one that is left. So paths must be given in the order of
                the blocks; a warning says so if it makes a difference.
        """
        upstreams = (self.upstream, "*") if self.any_upstream else (self.upstream,)
        defaults = asdict(MixOptions())
        mixes = {
            path: {name: block.get(name, default) for name, default in defaults.items()}
            for path, block in _listener_blocks(consumer, upstreams)
        }
        first, *others = mixes.values() or [defaults]
        if any(other != first for other in others):
            warnings.warn(
                f"The listeners to {self.upstream!r} in a component have different options, and spaCy does not say"
                " which one it replaces: they are taken in the order of the config. Check that the paths given to"
                f" nlp.replace_listeners come in this order too: {', '.join(mixes)}",
                UserWarning,
                stacklevel=2,
            )
        return {"@architectures": _ARCHITECTURE, "bilm": dict(bilm), **self.options, **first}


def _listener_blocks(
    block: Any, upstreams: tuple[str, ...], path: str = "model.tok2vec"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(block, Mapping):
        return
    if block.get("@architectures") == _LISTENER and block.get("upstream", "*") in upstreams:
        yield path, block
    for name, inner in block.items():
        yield from _listener_blocks(inner, upstreams, f"{path}.{name}")
