"""`spacy-elmo.BiLM.v1`: Docs -> the layers of their tokens."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats3d
from torch import Tensor

from ..bilm.model import BiLM
from .sequences import Sequences
from .shim import BiLMShim
from .spans import SpanGetter, rule_spans
from .unsaved import Unsaved

# Docs are read in groups of this many batches: enough for batches of sentences of one length, few enough that
# the layers of a whole nlp.pipe buffer need not exist twice.
_BATCHES_PER_GROUP = 8

MAX_BATCH_TOKENS = 4096


@dataclass
class ReadingOptions(Unsaved):
    """How Docs are read. It stands in the config, so it is not saved with the model, or an old value would win."""

    get_spans: SpanGetter = rule_spans
    max_batch_tokens: int = MAX_BATCH_TOKENS


def BiLM_v1(
    *,
    dim: int | None = None,
    projection: int | None = None,
    layers: int | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    skip: bool | None = None,
    forget_bias: float | None = None,
    words: int | None = None,
    char_dim: int | None = None,
    filters: list[list[int]] | None = None,
    activation: str | None = None,
    highways: int | None = None,
    max_characters: int | None = None,
) -> Model[list[Doc], list[Floats3d]]:
    """A biLM over Docs: (layers, n_tokens, width) for each, whitespace tokens zero.

    Every number that is null is taken from the weights file or from the saved pipeline, and one that is given
    must agree with them; with random weights those not given are `BiLMConfig`'s, which explains them all.
    A clip of 0 says that there is none.
    """
    stated = {name: value for name, value in locals().items() if value is not None}
    shape = {
        n: None if n.endswith("_clip") and value == 0 else value for n, value in stated.items()
    }
    return Model(
        "elmo-bilm",
        forward,
        init=init,
        shims=[BiLMShim(shape)],
        attrs={"options": ReadingOptions()},
    )


def configure(
    model: Model[list[Doc], list[Floats3d]],
    *,
    weights: str | None,
    frozen: bool,
    trainable: str,
    max_batch_tokens: int,
    get_spans: SpanGetter | None,
    lang: str | None = None,
) -> None:
    """Give a biLM the options that stand beside it in the config.

    Raises:
        ValueError: for one that is impossible, or a model that is no `spacy-elmo.BiLM.v1`.
    """
    if "options" not in model.attrs:
        raise ValueError(
            f"The model of elmo must be spacy-elmo.BiLM.v1, and this is {model.name!r}"
        )
    if max_batch_tokens < 1:
        raise ValueError(f"max_batch_tokens = {max_batch_tokens}: it must be at least 1")
    shim = shim_of(model)
    shim.weights, shim.lang = weights, lang
    shim.set_trainable(trainable)  # checked even when it is not used yet
    if frozen:
        shim.set_trainable(None)
    model.attrs["options"] = ReadingOptions(get_spans or rule_spans, max_batch_tokens)


def shim_of(model: Model[list[Doc], list[Floats3d]]) -> BiLMShim:
    """The shim of a `BiLM_v1` model."""
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def layers_and_width(model: Model[list[Doc], list[Floats3d]]) -> tuple[int, int]:
    """L + 1 and 2P of a `BiLM_v1` model, whose weights are loaded if need be."""
    config = shim_of(model).config
    return config.layers + 1, config.width


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Read the weights, or draw them."""
    shim_of(model).initialize()


def forward(
    model: Model[list[Doc], list[Floats3d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable]:
    """Layers of each Doc, in arrays of its own. The backward pass takes gradients of the same shapes."""
    options: ReadingOptions = model.attrs["options"]
    shim = shim_of(model)
    docs = list(docs)
    if is_train and shim.trainable and docs:
        return _begin_update(model, docs, options)
    layers: list[Floats3d] = []
    for group in _groups(docs, options.max_batch_tokens * _BATCHES_PER_GROUP):
        layers += _predict(model, group, options)
    return layers, _no_gradient


def _no_gradient(d_layers: list[Floats3d]) -> list[Doc]:
    return []


def _groups(docs: Sequence[Doc], tokens: int) -> Iterator[list[Doc]]:
    """Docs in order, together about as many tokens."""
    group: list[Doc] = []
    total = 0
    for doc in docs:
        if group and total + len(doc) > tokens:
            yield group
            group, total = [], 0
        group.append(doc)
        total += len(doc)
    if group:
        yield group


def _predict(model: Model, docs: list[Doc], options: ReadingOptions) -> list[Floats3d]:
    n_layers, width = layers_and_width(model)
    sequences = Sequences.of(docs, options.get_spans)
    shim = shim_of(model)
    target = torch.zeros((n_layers, sequences.tokens, width), device=shim.bilm.device)

    def read(bilm: BiLM) -> Tensor:
        for places, layers in _read(bilm, sequences, options.max_batch_tokens):
            target.index_add_(1, places, layers)
        return target

    flat: Any = torch2xp(shim.predict(read), ops=model.ops)
    # Owned: a slice would keep the group alive for as long as one of its Docs.
    return [flat[:, start:end].copy() for start, end in _bounds(docs)]


def _begin_update(
    model: Model, docs: list[Doc], options: ReadingOptions
) -> tuple[list[Floats3d], Callable]:
    sequences = Sequences.of(docs, options.get_spans)
    shim = shim_of(model)

    def read(bilm: BiLM) -> Tensor:
        n_layers, width = bilm.config.layers + 1, bilm.config.width
        target = torch.zeros((n_layers, sequences.tokens, width), device=bilm.device)
        for places, layers in _read(bilm, sequences, options.max_batch_tokens):
            target = target.index_add(1, places, layers)
        return target

    output, backprop_flat = shim.begin_update(read)
    flat: Any = torch2xp(output, ops=model.ops)

    def backprop(d_layers: list[Floats3d]) -> list[Doc]:
        gradient = model.ops.xp.concatenate(d_layers, axis=1)
        backprop_flat(xp2torch(gradient, device=output.device))
        return []

    return [flat[:, start:end] for start, end in _bounds(docs)], backprop


def _read(
    bilm: BiLM, sequences: Sequences, max_batch_tokens: int
) -> Iterable[tuple[Tensor, Tensor]]:
    """Batch by batch: (n,) places among the tokens and (L+1, n, 2P) what to add there."""
    counts = sequences.counts()
    shared = bool((counts > 1).any())
    types = bilm.token_ids(sequences.words)
    for lengths, batch in sequences.batches(max_batch_tokens):
        rows, words = torch.from_numpy(sequences.rows[batch]).unique(return_inverse=True)
        layers = bilm(types[rows], words.numpy(), lengths).layers
        if shared:
            # A word that several spans hold gets the mean of what they say.
            layers = layers / torch.from_numpy(counts[batch]).to(layers)[:, None]
        yield torch.from_numpy(sequences.places[batch]).to(bilm.device), layers


def _bounds(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(itertools.accumulate((len(doc) for doc in docs), initial=0))
