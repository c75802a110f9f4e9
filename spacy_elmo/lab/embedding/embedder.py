"""Computation of the ELMo vectors of a shard, which is a group of consecutive texts of a corpus."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc

from ...pipeline.encode.encoder import averages, shim_of
from ..corpora.items import Item, Shard
from ..corpora.pipelines import LayerSelection, elmo_and_later, find_elmo
from .shard_file import encode_shard

VectorDType: TypeAlias = Literal["float32", "float16"]
Pooling: TypeAlias = Literal["mean", "max"]

# If the vocabulary has this many strings, remove the new strings of each shard. Otherwise, it would grow with the text.
_MAX_STRINGS = 100_000


@dataclass(frozen=True)
class EmbedOptions:
    """Options for the vectors that `embed` writes: layers, data type and pooling.

    Raises:
        ValueError: an option has an unknown value.
    """

    layers: LayerSelection = "all"
    dtype: VectorDType = "float32"
    pooling: Pooling | None = None
    """Method that combines the token vectors of a text into one vector. None: keep one vector per token.
    Whitespace tokens are left out. If a text has only whitespace tokens, its vector is zero."""

    def __post_init__(self) -> None:
        for name, choices in (
            ("layers", get_args(LayerSelection)),
            ("dtype", get_args(VectorDType)),
            ("pooling", (*get_args(Pooling), None)),
        ):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} = {value!r}: it must be one of {choices}")


class Embedder:
    """Callable that computes the vectors of a shard (consecutive texts of a corpus). The pipeline components
    after elmo do not run.

    The content of a shard file depends only on the texts of the shard, the pipeline, the machine and the
    number of threads. Other machines or numbers of threads can round float32 numbers differently.

    Raises:
        ValueError: the pipeline does not have exactly one elmo component.
    """

    def __init__(self, nlp: Language, options: EmbedOptions) -> None:
        self._nlp = nlp
        _, self._elmo = find_elmo(nlp)
        self._disabled = elmo_and_later(nlp)
        self._options = options

    def __call__(self, shard: Shard) -> bytes:
        """Compute the vectors of a shard, and return the content of the shard file (see `encode_shard`)."""
        # Do not use a memory zone from the start: inside it, the tokenizer is slow, because it does not fill its cache.
        is_full = len(self._nlp.vocab.strings) >= _MAX_STRINGS
        with self._nlp.memory_zone() if is_full else contextlib.nullcontext():
            docs = self._docs(shard.items)
            tokens = [[token.text for token in doc] for doc in docs]
            pooled = self._options.pooling is not None
            shim_of(self._elmo.model).clear_cache()
            vectors = self._compute(docs)
            if pooled:
                vectors = [self._pool(rows, doc) for rows, doc in zip(vectors, docs, strict=True)]
            flat = np.concatenate(vectors, axis=-2, dtype=self._options.dtype, casting="same_kind")
            return encode_shard(shard, flat, tokens, pooled=pooled)

    def _docs(self, items: Sequence[Item]) -> list[Doc]:
        vocab = self._nlp.vocab
        inputs = [item if isinstance(item, str) else Doc(vocab, words=item) for item in items]
        return list(self._nlp.pipe(inputs, disable=self._disabled))

    def _compute(self, docs: list[Doc]) -> list[np.ndarray]:
        """Compute the token vectors of each Doc with the model of the elmo component.

        Returns:
            One array per Doc: (layers, tokens, width) for `layers` "all", otherwise (tokens, width).
        """
        model = self._elmo.model
        if self._options.layers == "average":
            return [model.ops.to_numpy(average) for average in averages(model, docs)]
        all_layers = model.predict(docs)
        if self._options.layers == "top":
            all_layers = [layers[-1] for layers in all_layers]
        return [model.ops.to_numpy(layers) for layers in all_layers]

    def _pool(self, vectors: np.ndarray, doc: Doc) -> np.ndarray:
        """Return the mean or maximum of the token vectors of a Doc, without whitespace tokens. `vectors` has
        the shape (layers, tokens, width) or (tokens, width). In the result, the axis of tokens has length
        1."""
        is_word = doc.to_array(IS_SPACE) == 0
        if not is_word.any():
            return np.zeros_like(vectors, shape=(*vectors.shape[:-2], 1, vectors.shape[-1]))
        rows = vectors[..., is_word, :]
        if self._options.pooling == "max":
            return rows.max(axis=-2, keepdims=True)
        return rows.mean(axis=-2, keepdims=True, dtype=np.float32)
