"""`spacy-elmo.BiLM.v1`, the thinc model of the `elmo` component. It computes the biLM layers of Docs."""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model, xp2torch
from thinc.types import Floats2d, Floats3d
from torch import Tensor

from ...bilm.model import MAX_WORDS, BiLM, is_finite, plain_inference
from ...bilm.weights import StartState
from ..factory_options import BiLMOptions
from .mapped_arrays import mapped_copy, mapped_zeros
from .shim import BiLMShim
from .spans import Sequences, batches

# Docs are processed in groups of this many batches. A group is large enough to sort sentences into batches of one
# length, and small enough to avoid a second copy of the layers of a whole nlp.pipe buffer.
_BATCHES_PER_GROUP = 8
_DIRECTIONS = np.array([[0], [1]])
_CPU = torch.device("cpu")


def BiLM_v1() -> Model[list[Doc], list[Floats3d]]:
    """Build the biLM of `elmo` and of `spacy-elmo.ElmoTok2Vec.v1`. It computes the layers of each Doc, (layers,
    n_tokens, width), with zeros for whitespace tokens. The sizes come with the weights.
    """
    shim = BiLMShim()
    return Model(
        "elmo-bilm",
        forward,
        init=init,
        dims={"nO": None},
        shims=[shim],
        attrs={"options": shim.options},
    )


def configure(model: Model[list[Doc], list[Floats3d]], options: BiLMOptions) -> None:
    """Set the options of a component on the component's `BiLM_v1` model."""
    model.attrs["options"] = options
    shim_of(model).configure(options)


def shim_of(model: Model[list[Doc], list[Floats3d]]) -> BiLMShim:
    """Return the shim of a `BiLM_v1` model: the thinc object that holds the torch network."""
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def layers_and_width(model: Model[list[Doc], list[Floats3d]]) -> tuple[int, int]:
    """Return the number of layers of a `BiLM_v1` model (the token encoder and the LSTM layers) and their
    width (both directions together). Load the weights if necessary. Set the model's dim "nO" to the width.
    """
    config = shim_of(model).config
    model.set_dim("nO", config.width, force=True)
    return config.layers + 1, config.width


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Read the weights file. If the option `weights` is null, draw random weights."""
    shim_of(model).initialize()
    layers_and_width(model)


def forward(
    model: Model[list[Doc], list[Floats3d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable]:
    """Compute the layers of each Doc. In prediction, the arrays of different Docs share no memory.

    The second result is the function for the backward pass. It takes float32 gradients in the shapes of the
    layers. If the option `dtype` is float16, it ignores the rounding of the layers to float16.
    """
    docs = list(docs)
    if is_train and docs and not model.attrs["options"].frozen:
        flat, backprop = _compute(model, docs, train=True)
        return [flat[:, start:end] for start, end in _bounds(docs)], backprop
    return _predict(model, docs, average=False), lambda d_layers: []


def averages(model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> list[Floats2d]:
    """Return the average of the layers for each Doc, (n_tokens, width). The average needs less memory than
    all layers."""
    return _predict(model, docs, average=True)


def is_initializing() -> bool:
    """Return True if thinc is initializing a model (`Model.initialize` is running in this thread).

    Then the layers around a listener predict on a sample of Docs to infer the shape of their input. thinc does
    not tell a layer when the initialization of the model ends that contains the layer.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not Model.initialize.__code__:
        frame = frame.f_back
    return frame is not None


def zeros(model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> list[Floats3d]:
    """For each Doc, return zeros in the shape of its layers."""
    layers, width = layers_and_width(model)
    return [model.ops.alloc3f(layers, len(doc), width) for doc in docs]


def _predict(model: Model, docs: Sequence[Doc], *, average: bool) -> list[Any]:
    outputs: list[Any] = []
    for part in batches([len(doc) for doc in docs], MAX_WORDS * _BATCHES_PER_GROUP):
        group = docs[part]
        flat, _ = _compute(model, group, average=average)
        if len(group) == 1:
            outputs.append(flat)
        else:
            outputs += [mapped_copy(flat[..., start:end, :]) for start, end in _bounds(group)]
    return outputs


def _bounds(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(itertools.accumulate((len(doc) for doc in docs), initial=0))


def _compute(
    model: Model, docs: Sequence[Doc], *, train: bool = False, average: bool = False
) -> tuple[Any, Callable]:
    """Compute the layers of all tokens of some Docs, (layers, tokens, width), or their average, (tokens, width).
    The second result is the function for the backward pass, if `train` builds an autograd graph."""
    options, shim = model.attrs["options"], shim_of(model)
    n_layers, width = layers_and_width(model)
    sequences = Sequences.of(docs, options.get_spans)
    # A word in several spans gets the mean of its vectors. Only the complete mean is rounded, and gradients ignore the
    # rounding.
    dtype = "float32" if train or sequences.overlap else options.dtype
    shape = (sequences.n_tokens, width) if average else (n_layers, sequences.n_tokens, width)
    flat = mapped_zeros(model.ops.xp, shape, dtype)
    # In training all words at once, because no gradient flows from a chunk of a span to the previous chunk.
    max_words = len(sequences.type_of_word) if train else MAX_WORDS
    device = _CPU if isinstance(flat, np.ndarray) else shim.device
    with torch.enable_grad() if train else plain_inference(device):
        target = torch.from_dlpack(flat)
        bilm = shim.bilm if train else shim.bilm_for_inference()
        by_token = target[None] if average else target
        _write_layers(bilm, sequences, by_token, shim.start_state, max_words, average=average)
        finite = train or is_finite(target)
    if not finite:
        warnings.warn(
            "The biLM has computed vectors that are not finite, although its weights are finite: intermediate numbers"
            f" were too large for precision {options.precision!r} and dtype {options.dtype!r}. The training of the"
            " weights has diverged, or the weights are damaged. Use other weights",
            stacklevel=2,
        )

    def backprop(d_layers: list[Floats3d]) -> list[Doc]:
        gradient = xp2torch(model.ops.xp.concatenate(d_layers, axis=1), device=shim.device)
        # There is no graph without words, or if no trained parameter was used.
        if target.requires_grad:
            torch.autograd.backward((target,), (gradient,))
        return []

    return flat.astype(options.dtype, copy=False), backprop


def _write_layers(
    bilm: BiLM,
    sequences: Sequences,
    by_token: Tensor,
    start: StartState | None,
    max_words: int,
    *,
    average: bool,
) -> None:
    """Write the layers of every word, or their average, to zeros, (layers, tokens, width). A token in several
    spans gets the mean of its vectors."""
    vectors, rows = by_token, sequences.tokens
    if sequences.overlap:
        # The order in which spans are computed depends on all Docs, so their vectors are added at the end.
        vectors = by_token.new_empty((len(by_token), len(rows), by_token.shape[2]))
        rows = np.arange(len(rows))
    # For each row, that of the forward and of the backward direction.
    halves: Any = vectors.view(len(vectors), -1, vectors.shape[2] // 2)
    if halves.is_cpu and not torch.is_grad_enabled():
        halves = halves.numpy()  # which assigns a few rows much faster
    types = bilm.encode_words(sequences.types)
    for lengths, batch in sequences.batches(max_words):
        state = None if start is None else start.for_batch(len(lengths), bilm.device)
        words = sequences.type_of_word[batch]
        for chunk in bilm.forward_chunks(types, words, lengths, max_words, state=state):
            layers: Any = [sum(chunk.layers) / len(chunk.layers)] if average else chunk.layers
            index = 2 * rows[batch[chunk.places]] + _DIRECTIONS
            for level, layer in enumerate(layers):
                halves[level, index] = (
                    layer if isinstance(halves, np.ndarray) else layer.to(vectors)
                )
    if sequences.overlap:
        write_means(by_token, vectors, sequences.tokens)


def write_means(target: Tensor, vectors: Tensor, tokens: np.ndarray) -> None:
    """Write the mean of the vectors that each token gets in several overlapping spans to `target`. Differentiable.

    The vectors of a token are added in their order, so the rounding of the mean does not depend on other
    tokens.

    Args:
        target: (layers, tokens, width). The values of tokens without a vector are not changed.
        vectors: (layers, N, width), N vectors for tokens.
        tokens: (N,) for each vector, the index of its token in `target`.
    """
    counts, rest = np.bincount(tokens), np.arange(len(tokens))
    add = target.index_copy_  # because adding -0 to 0 gives +0
    while len(rest):
        rows, first = np.unique(tokens[rest], return_index=True)
        words = rest[first]  # the first of the remaining vectors of each token
        to_rows, from_words, shares = (
            torch.from_numpy(each).to(target.device) for each in (rows, words, counts[rows])
        )
        add(1, to_rows, vectors[:, from_words] / shares[:, None].to(vectors))
        rest, add = np.delete(rest, first), target.index_add_
