"""`spacy-elmo.ElmoTok2Vec.v1`: a biLM and its mix inside one consumer, and the change from a listener to it."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ...bilm.matmul_precision import Precision
from ..options import DEFAULT_WEIGHTS, MAX_BATCH_TOKENS, DType, Start
from ..reading.encoder import configure, layers_and_width, shim_of
from ..reading.spans import SpanGetter
from ..unsaved import Unsaved
from .batch import ListenerBatch
from .listener import mix_of
from .scalar_mix import Layers, MixOptions, scalar_mix

_ARCHITECTURE = "spacy-elmo.ElmoTok2Vec.v1"
_LISTENER = "spacy-elmo.ElmoListener.v1"


def ElmoTok2Vec_v1(
    *,
    bilm: Model[list[Doc], list[Floats3d]],
    weights: str | None = DEFAULT_WEIGHTS,
    frozen: bool = True,
    trainable: str = "all",
    unfreeze_at: int = 0,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    get_spans: SpanGetter | None = None,
    dtype: DType = "float32",
    start: Start = "zero",
    precision: Precision = "float32",
    layers: Layers = "mix",
    grad_factor: float = 1.0,
    dropout: float = 0.0,
    l2: float = 0.0,
    layer_norm: bool = False,
) -> Model[list[Doc], list[Floats2d]]:
    """A biLM of the consumer's own, with its mix: (n_tokens, width) per Doc, from the Doc's words alone.

    The options are those of the `elmo` component, then those of `ElmoListener_v1`. `unfreeze_at` counts the
    consumer's steps; a biLM that `replace_listeners` copies keeps its count until the pipeline is saved and loaded.
    """
    configure(
        bilm,
        weights=weights,
        frozen=frozen,
        trainable=trainable,
        unfreeze_at=unfreeze_at,
        max_batch_tokens=max_batch_tokens,
        get_spans=get_spans,
        dtype=dtype,
        start=start,
        precision=precision,
    )
    return _chain(bilm, scalar_mix(MixOptions(layers, grad_factor, dropout, l2, layer_norm)))


@dataclass
class Initializing(Unsaved):
    """What is known between `initialize` and the first step of training."""

    sample: ListenerBatch | None = None


def _chain(bilm: Model, mix: Model) -> Model[list[Doc], list[Floats2d]]:
    return Model(
        "elmo-tok2vec",
        forward,
        init=init,
        dims={"nO": mix.maybe_get_dim("nO")},
        layers=[bilm, mix],
        attrs={"initializing": Initializing()},
    )


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Load the biLM and take its shape."""
    bilm, mix = model.layers
    bilm.initialize()
    layers, width = layers_and_width(bilm)
    model.set_dim("nO", width)
    mix.initialize(X=[model.ops.alloc3f(layers, 0, width)])
    sample = ListenerBatch.sample(X, model.ops, layers, width) if X else None
    model.attrs["initializing"].sample = sample


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Read and mix."""
    bilm, mix = model.layers
    initializing = model.attrs["initializing"]
    if initializing.sample is not None and not is_train:
        zeros = [initializing.sample.layers_of(doc) for doc in docs]
        if all(layers is not None for layers in zeros):
            return mix.predict(zeros), lambda d_mixed: []
    initializing.sample = None
    layers, backprop_bilm = bilm(docs, is_train)
    mixed, unmix = mix(layers, is_train)

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        d_layers = unmix(d_mixed, inputs=shim_of(bilm).trainable is not None)
        if d_layers:
            backprop_bilm(d_layers)
        return []

    return mixed, backprop


def replace_listener(copied: Model, listener: Model, upstream: Any) -> Model:
    """Build what stands in for a listener (`model.attrs["replace_listener"]`): the copied biLM, and its own mix."""
    return _chain(copied, mix_of(listener).copy())


@dataclass
class ReplaceListenerConfig:
    """Write the config that rebuilds what `replace_listener` builds (`model.attrs["replace_listener_cfg"]`).

    spaCy hands over the `model` blocks alone, so the component's other options are kept here.
    """

    upstream: str
    """The name of the component."""
    options: dict[str, Any] = field(default_factory=dict)
    """Its options, as they stand in the config."""
    any_upstream: bool = True
    """Whether a listener to "*" listens to it. If none does, those that stand in a config are another elmo's."""

    def __call__(self, bilm: dict[str, Any], consumer: dict[str, Any]) -> dict[str, Any]:
        """
        Args:
            bilm: the `model` block of the component.
            consumer: the block of the consumer that holds the listener, at any depth. spaCy does not say which
                listener it means: the first one that still stands there is taken. So paths must be given in
                the order of the blocks; where it matters, a warning says so.
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
