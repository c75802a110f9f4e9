"""Computation of the vectors of a shard (a group of consecutive items of a corpus)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.items import Item, Shard
from ..corpora.pipelines import LayerSelection, elmo_and_later, find_elmo
from ..pipeline.encode.encoder import averages, shim_of
from .shard_file import encode_shard

VectorDType: TypeAlias = Literal["float32", "float16"]
Pooling: TypeAlias = Literal["mean", "max"]

# If the vocabulary has this many strings, remove the new strings of each shard. Otherwise, it would grow with the text.
_MAX_STRINGS = 100_000


@dataclass(frozen=True)
class EmbedOptions:
    """Options for the vectors that `embed` writes: layers, data type and pooling."""

    layers: LayerSelection = "all"
    dtype: VectorDType = "float32"
    pooling: Pooling | None = None
    """Method that pools the token vectors of an item (such as a line) to one vector. None: no pooling.
    Whitespace tokens are left out. If an item has only whitespace tokens, the pooled vector is zero."""


class Embedder:
    """Callable that computes the vectors of a shard (a group of consecutive items of a corpus).

    The vectors do not depend on other shards. Rounding can differ between machines and numbers of threads.

    Args:
        nlp: a pipeline with an elmo component. The components after elmo do not run.
        options: layers, data type and pooling of the vectors.

    Raises:
        ValueError: the pipeline has no elmo component, or has more than one.
    """

    def __init__(self, nlp: Language, options: EmbedOptions) -> None:
        self._nlp = nlp
        _, self._elmo = find_elmo(nlp)
        self._disabled = elmo_and_later(nlp)
        self._options = options

    def __call__(self, shard: Shard) -> bytes:
        """Compute the vectors of a shard, and return the content of the shard file (safetensors)."""
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
        """Return the mean or maximum of the token vectors of a Doc, without whitespace tokens.

        Args:
            vectors: (layers, tokens, width), or (tokens, width) for one layer or the average of the layers.

        Returns:
            (layers, 1, width) or (1, width).
        """
        is_word = doc.to_array(IS_SPACE) == 0
        if not is_word.any():
            return np.zeros_like(vectors, shape=(*vectors.shape[:-2], 1, vectors.shape[-1]))
        rows = vectors[..., is_word, :]
        if self._options.pooling == "max":
            return rows.max(axis=-2, keepdims=True)
        return rows.mean(axis=-2, keepdims=True, dtype=np.float32)
