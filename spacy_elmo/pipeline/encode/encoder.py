"""`spacy-elmo.BiLM.v1`, the model of the component: Docs -> the layers of their tokens."""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d
from torch import Tensor

from ...bilm.is_finite import is_finite
from ...bilm.model import BiLM
from ..options import BiLMOptions
from ..store.mapped_arrays import mapped_copy, mapped_zeros
from .sequences import Sequences
from .shim import BiLMShim

# Docs are processed in groups of this many batches: enough for batches of sentences of one length, few enough that
# the layers of a whole nlp.pipe buffer need not exist twice.
_BATCHES_PER_GROUP = 8


def BiLM_v1(
    *,
    dim: int | None = None,
    projection: int | None = None,
    layers: int | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    skip: bool | None = None,
    forget_bias: float | None = None,
    n_words: int | None = None,
    char_dim: int | None = None,
    filters: list[list[int]] | None = None,
    activation: str | None = None,
    highways: int | None = None,
    max_characters: int | None = None,
    word_dim: int | None = None,
    n_symbols: int | None = None,
    square_projections: bool | None = None,
) -> Model[list[Doc], list[Floats3d]]:
    """Build a biLM over Docs: (layers, n_tokens, width) for each Doc, zeros for whitespace tokens.

    Every number that is null is taken from the weights file or from the saved pipeline, and a number that is given
    must agree with them. For random weights, those not given are the defaults of `BiLMConfig`, which explains all of
    them. A clip of 0 means no clipping.
    """
    stated = {name: value for name, value in locals().items() if value is not None}
    shape = {
        n: None if n.endswith("_clip") and value == 0 else value for n, value in stated.items()
    }
    shim = BiLMShim(shape)
    return Model("elmo-bilm", forward, init=init, shims=[shim], attrs={"options": shim.options})


def configure(
    model: Model[list[Doc], list[Floats3d]], options: BiLMOptions, *, lang: str | None = None
) -> None:
    """Pass the options of the config on to a biLM.

    Raises:
        ValueError: the model is not a `spacy-elmo.BiLM.v1`.
    """
    if "options" not in model.attrs:
        raise ValueError(
            f"The model of elmo must be spacy-elmo.BiLM.v1, and this is {model.name!r}"
        )
    model.attrs["options"] = options
    shim_of(model).configure(options, lang)


def shim_of(model: Model[list[Doc], list[Floats3d]]) -> BiLMShim:
    """Return the shim of a `BiLM_v1` model."""
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def layers_and_width(model: Model[list[Doc], list[Floats3d]]) -> tuple[int, int]:
    """Return the number of layers, L + 1, and their width, 2P. Loads the weights if necessary."""
    config = shim_of(model).config
    return config.layers + 1, config.width


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Read the weights file, or draw random weights."""
    shim_of(model).initialize()


def forward(
    model: Model[list[Doc], list[Floats3d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable]:
    """Compute the layers of each Doc, in arrays that share no memory with those of other Docs. The backward pass takes
    float32 gradients of the same shapes and ignores the rounding to `dtype`."""
    options: BiLMOptions = model.attrs["options"]
    docs = list(docs)
    if is_train and shim_of(model).trainable and docs:
        return _begin_update(model, docs, options)
    return _predict(model, docs, options, average=False), _no_gradient


def averages(model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> list[Floats2d]:
    """Compute the average of the layers of each Doc, (n_tokens, width). All layers of a Doc are never in memory at
    once."""
    return _predict(model, docs, model.attrs["options"], average=True)


def _no_gradient(d_layers: list[Floats3d]) -> list[Doc]:
    return []


def _groups(docs: Sequence[Doc], tokens: int) -> Iterator[list[Doc]]:
    """Yield Docs in their order, in groups of about as many tokens."""
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
    model: Model, docs: Sequence[Doc], options: BiLMOptions, *, average: bool
) -> list[Any]:
    outputs: list[Any] = []
    for group in _groups(docs, options.max_batch_tokens * _BATCHES_PER_GROUP):
        flat = _predict_group(model, group, options, average)
        if len(group) == 1:
            outputs.append(flat)
        else:
            outputs += [mapped_copy(flat[..., start:end, :]) for start, end in _bounds(group)]
    return outputs


def _predict_group(model: Model, docs: list[Doc], options: BiLMOptions, average: bool) -> Any:
    """Compute (layers, T, width) for the T tokens of some Docs; or (T, width), their average."""
    n_layers, width = layers_and_width(model)
    sequences = Sequences.of(docs, options.get_spans)
    # A word in several spans gets the mean of its vectors there, which is rounded only when it is complete.
    dtype = "float32" if sequences.overlap else options.dtype
    shape = (sequences.n_tokens, width) if average else (n_layers, sequences.n_tokens, width)
    flat = mapped_zeros(model.ops.xp, shape, dtype)
    shim = shim_of(model)

    def compute(bilm: BiLM) -> Tensor:
        target = torch.from_dlpack(flat)  # the same memory
        for words, layers in _chunks(shim, bilm, sequences, options.max_batch_tokens):
            if average:
                _write(target[None], [torch.stack(layers).mean(0)], sequences, words)
            else:
                _write(target, layers, sequences, words)
        return target

    if not is_finite(shim.predict(compute)):
        warnings.warn(
            "The biLM has computed vectors that are not finite, although its weights are: numbers in between were too"
            f" large for precision {options.precision!r} and dtype {options.dtype!r}. Its weights are those of a"
            " training that diverged, or are damaged",
            stacklevel=2,
        )
    return flat.astype(options.dtype, copy=False)


def _chunks(
    shim: BiLMShim, bilm: BiLM, sequences: Sequences, max_words: int
) -> Iterator[tuple[np.ndarray, list[Tensor]]]:
    """Yield (2, m) indices of the words that each direction has processed, and (2, m, P) outputs for each layer."""
    token_ids = bilm.token_ids(sequences.words)
    for lengths, batch in sequences.batches(max_words):
        state = shim.first_state(len(lengths))
        for chunk in bilm.forward_chunks(
            token_ids, sequences.rows[batch], lengths, max_words, state=state
        ):
            yield batch[chunk.words], chunk.layers


def _write(
    target: Tensor, layers: Sequence[Tensor], sequences: Sequences, words: np.ndarray
) -> None:
    """Write the outputs of each direction, for the words that it has processed, into its half of their vectors."""
    halves = target.split(target.shape[2] // 2, dim=2)
    for direction, half in enumerate(halves):
        places = torch.from_numpy(sequences.places[words[direction]]).to(target.device)
        for target_layer, layer in zip(half, layers, strict=True):
            values = layer[direction].to(target)
            if sequences.overlap:
                counts = torch.from_numpy(sequences.counts[words[direction]])
                target_layer.index_add_(0, places, values / counts.to(values)[:, None])
            else:
                target_layer.index_copy_(0, places, values)


def _begin_update(
    model: Model, docs: list[Doc], options: BiLMOptions
) -> tuple[list[Floats3d], Callable]:
    sequences = Sequences.of(docs, options.get_spans)
    shim = shim_of(model)

    def compute(bilm: BiLM) -> Tensor:
        n_layers, width = bilm.config.layers + 1, bilm.config.width
        target = torch.zeros((n_layers, sequences.n_tokens, width), device=bilm.device)
        token_ids = bilm.token_ids(sequences.words)
        for lengths, batch in sequences.batches(options.max_batch_tokens):
            # A long span is not divided into chunks here: no gradient flows out of the final state of a chunk, and with
            # the graph of the whole span, which is what fills the memory, chunks would save nothing.
            rows, words = torch.from_numpy(sequences.rows[batch]).unique(return_inverse=True)
            state = shim.first_state(len(lengths))
            layers = bilm(token_ids[rows], words.numpy(), lengths, state).layers
            if sequences.overlap:
                layers = layers / torch.from_numpy(sequences.counts[batch]).to(layers)[:, None]
            places = torch.from_numpy(sequences.places[batch]).to(bilm.device)
            target = target.index_add(1, places, layers)
        return target

    output, backprop_flat = shim.begin_update(compute)
    flat: Any = torch2xp(output, ops=model.ops).astype(options.dtype, copy=False)

    def backprop(d_layers: list[Floats3d]) -> list[Doc]:
        gradient = model.ops.xp.concatenate(d_layers, axis=1)
        backprop_flat(xp2torch(gradient, device=output.device))
        return []

    return [flat[:, start:end] for start, end in _bounds(docs)], backprop


def _bounds(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(itertools.accumulate((len(doc) for doc in docs), initial=0))
