"""A pipeline with an elmo as a function from a shard to the content of its file."""

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
from ..corpora.pipelines import elmo_of
from ..pipeline.reading.encoder import averages, shim_of
from .shard_file import pack

Layers: TypeAlias = Literal["all", "average", "top"]
DType: TypeAlias = Literal["float32", "float16"]
Pooling: TypeAlias = Literal["mean", "max"]

# Strings in a vocabulary after which it forgets those of each shard again, or it would grow with the text.
_WORDS_KEPT = 100_000


@dataclass(frozen=True)
class EmbedOptions:
    """What is kept of the layers."""

    layers: Layers = "all"
    """All of them, their average, or the last one."""
    dtype: DType = "float32"
    pooling: Pooling | None = None
    """One vector per item, over its tokens that are no whitespace; zeros if there are none. None: one per token."""


class Embedder:
    """Reads the items of a shard with a pipeline, from its tokenizer to its elmo; what comes after elmo does not run.

    A shard is read by itself, in one order: its bytes depend on nothing but its items, the pipeline, and the machine
    with its number of threads, which decide how float32 is rounded.

    Raises:
        ValueError: as of `elmo_of`.
    """

    def __init__(self, nlp: Language, wanted: EmbedOptions) -> None:
        self._nlp = nlp
        name, self._elmo = elmo_of(nlp)
        self._not_run = nlp.pipe_names[nlp.pipe_names.index(name) :]
        self._wanted = wanted

    def __call__(self, shard: Shard) -> bytes:
        """The content of the shard's file."""
        # Not from the start: in a memory zone the tokenizer's cache learns nothing, which makes it slow.
        known = len(self._nlp.vocab.strings) >= _WORDS_KEPT
        with self._nlp.memory_zone() if known else contextlib.nullcontext():
            docs = self._docs(shard.items)
            tokens = [[token.text for token in doc] for doc in docs]
            pooled = self._wanted.pooling is not None
            shim_of(self._elmo.model).forget()
            vectors = self._read(docs)
            if pooled:
                vectors = [self._pool(rows, doc) for rows, doc in zip(vectors, docs, strict=True)]
            flat = np.concatenate(vectors, axis=-2, dtype=self._wanted.dtype, casting="same_kind")
            return pack(shard, flat, tokens, pooled=pooled)

    def _docs(self, items: Sequence[Item]) -> list[Doc]:
        vocab = self._nlp.vocab
        given = [item if isinstance(item, str) else Doc(vocab, words=item) for item in items]
        return list(self._nlp.pipe(given, disable=self._not_run))

    def _read(self, docs: list[Doc]) -> list[np.ndarray]:
        """(..., n_tokens, width) of each Doc. Straight from the model, because a Doc may keep their average alone."""
        model = self._elmo.model
        if self._wanted.layers == "average":
            return [model.ops.to_numpy(average) for average in averages(model, docs)]
        found = model.predict(docs)
        if self._wanted.layers == "top":
            found = [layers[-1] for layers in found]
        return [model.ops.to_numpy(layers) for layers in found]

    def _pool(self, vectors: np.ndarray, doc: Doc) -> np.ndarray:
        """(..., 1, width) from (..., n_tokens, width)."""
        words = doc.to_array(IS_SPACE) == 0
        if not words.any():
            return np.zeros_like(vectors, shape=(*vectors.shape[:-2], 1, vectors.shape[-1]))
        chosen = vectors[..., words, :]
        if self._wanted.pooling == "max":
            return chosen.max(axis=-2, keepdims=True)
        return chosen.mean(axis=-2, keepdims=True, dtype=np.float32)
