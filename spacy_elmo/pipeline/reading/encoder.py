"""`spacy-elmo.BiLM.v1`: Docs -> the layers of their tokens."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d
from torch import Tensor

from ...bilm.matmul_precision import PRECISIONS, Precision
from ...bilm.model import BiLM
from ..keeping.mapped_arrays import mapped_copy, mapped_zeros
from ..options import MAX_BATCH_TOKENS, DType, Start
from ..unsaved import Unsaved
from .sequences import Sequences
from .shim import BiLMShim
from .spans import SpanGetter, rule_spans

# Docs are read in groups of this many batches: enough for batches of sentences of one length, few enough that
# the layers of a whole nlp.pipe buffer need not exist twice.
_BATCHES_PER_GROUP = 8


@dataclass
class ReadingOptions(Unsaved):
    """How Docs are read, and what of it is kept. It stands in the config, so it is not saved with the model, or an old
    value would win."""

    get_spans: SpanGetter = rule_spans
    max_batch_tokens: int = MAX_BATCH_TOKENS
    dtype: DType = "float32"
    """In which layers and averages are rounded. Whoever reads them computes in float32."""


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
    word_dim: int | None = None,
    symbols: int | None = None,
    square_projections: bool | None = None,
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
    unfreeze_at: int,
    max_batch_tokens: int,
    get_spans: SpanGetter | None,
    dtype: DType,
    start: Start,
    precision: Precision,
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
    if precision not in PRECISIONS:
        raise ValueError(f"precision = {precision!r}: expected one of {', '.join(PRECISIONS)}")
    shim = shim_of(model)
    shim.weights, shim.lang, shim.start, shim.precision = weights, lang, start, precision
    shim.set_trainable(trainable, unfreeze_at)  # checked even when it is not used yet
    if frozen:
        if unfreeze_at:
            raise ValueError(
                f"frozen = true and unfreeze_at = {unfreeze_at}: a biLM that is to be trained from a step on is not"
                " frozen. Set frozen = false, or unfreeze_at = 0"
            )
        shim.set_trainable(None)
    model.attrs["options"] = ReadingOptions(get_spans or rule_spans, max_batch_tokens, dtype)


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
    """Layers of each Doc, in arrays of its own. The backward pass takes gradients of the same shapes, in float32; it
    passes over the rounding to `dtype`."""
    options: ReadingOptions = model.attrs["options"]
    shim = shim_of(model)
    docs = list(docs)
    if is_train and shim.trainable and docs:
        return _begin_update(model, docs, options)
    return _predict(model, docs, options, average=False), _no_gradient


def averages(model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> list[Floats2d]:
    """The average of the layers of each Doc, (n_tokens, width). No Doc has all of its layers in memory at any time."""
    return _predict(model, docs, model.attrs["options"], average=True)


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


def _predict(
    model: Model, docs: Sequence[Doc], options: ReadingOptions, *, average: bool
) -> list[Any]:
    kept: list[Any] = []
    for group in _groups(docs, options.max_batch_tokens * _BATCHES_PER_GROUP):
        flat = _predict_group(model, group, options, average)
        alone = len(group) == 1
        kept += [flat] if alone else [mapped_copy(flat[..., s:e, :]) for s, e in _bounds(group)]
    return kept


def _predict_group(model: Model, docs: list[Doc], options: ReadingOptions, average: bool) -> Any:
    """(layers, T, width) of the T tokens of some Docs; or (T, width), their average."""
    n_layers, width = layers_and_width(model)
    sequences = Sequences.of(docs, options.get_spans)
    # A word that several spans hold gets the mean of what they say, which is rounded when it is complete.
    dtype = "float32" if sequences.overlap else options.dtype
    shape = (sequences.tokens, width) if average else (n_layers, sequences.tokens, width)
    flat = mapped_zeros(model.ops.xp, shape, dtype)
    shim = shim_of(model)

    def read(bilm: BiLM) -> Tensor:
        target = torch.from_dlpack(flat)  # the same memory
        for words, layers in _pieces(shim, bilm, sequences, options.max_batch_tokens):
            if average:
                _write(target[None], [torch.stack(layers).mean(0)], sequences, words)
            else:
                _write(target, layers, sequences, words)
        return target

    shim.predict(read)
    return flat.astype(options.dtype, copy=False)


def _pieces(
    shim: BiLMShim, bilm: BiLM, sequences: Sequences, max_words: int
) -> Iterator[tuple[np.ndarray, list[Tensor]]]:
    """(2, m) which words the two directions have read, and (2, m, P) what they say of them in each layer."""
    types = bilm.token_ids(sequences.words)
    for lengths, batch in sequences.batches(max_words):
        state = shim.first_state(len(lengths))
        for piece in bilm.forward_chunks(
            types, sequences.rows[batch], lengths, max_words, state=state
        ):
            yield batch[piece.words], piece.layers


def _write(
    target: Tensor, layers: Sequence[Tensor], sequences: Sequences, words: np.ndarray
) -> None:
    """Each direction has read words of its own, and fills its half of their vectors."""
    halves = target.split(target.shape[2] // 2, dim=2)
    for direction, half in enumerate(halves):
        places = torch.from_numpy(sequences.places[words[direction]]).to(target.device)
        for kept, said in zip(half, layers, strict=True):
            values = said[direction].to(target)
            if sequences.overlap:
                counts = torch.from_numpy(sequences.counts[words[direction]])
                kept.index_add_(0, places, values / counts.to(values)[:, None])
            else:
                kept.index_copy_(0, places, values)


def _begin_update(
    model: Model, docs: list[Doc], options: ReadingOptions
) -> tuple[list[Floats3d], Callable]:
    sequences = Sequences.of(docs, options.get_spans)
    shim = shim_of(model)

    def read(bilm: BiLM) -> Tensor:
        n_layers, width = bilm.config.layers + 1, bilm.config.width
        target = torch.zeros((n_layers, sequences.tokens, width), device=bilm.device)
        types = bilm.token_ids(sequences.words)
        for lengths, batch in sequences.batches(options.max_batch_tokens):
            # A long span is read in one piece here: no gradient flows out of the state that a piece would leave, so
            # it would only be right with the graph of the whole span, and that is what fills the memory.
            rows, words = torch.from_numpy(sequences.rows[batch]).unique(return_inverse=True)
            state = shim.first_state(len(lengths))
            layers = bilm(types[rows], words.numpy(), lengths, state).layers
            if sequences.overlap:
                layers = layers / torch.from_numpy(sequences.counts[batch]).to(layers)[:, None]
            places = torch.from_numpy(sequences.places[batch]).to(bilm.device)
            target = target.index_add(1, places, layers)
        return target

    output, backprop_flat = shim.begin_update(read)
    flat: Any = torch2xp(output, ops=model.ops).astype(options.dtype, copy=False)

    def backprop(d_layers: list[Floats3d]) -> list[Doc]:
        gradient = model.ops.xp.concatenate(d_layers, axis=1)
        backprop_flat(xp2torch(gradient, device=output.device))
        return []

    return [flat[:, start:end] for start, end in _bounds(docs)], backprop


def _bounds(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(itertools.accumulate((len(doc) for doc in docs), initial=0))
