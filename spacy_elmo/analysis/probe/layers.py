"""Sentences to the layers of their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...corpora.pipelines import elmo_of
from ...pipeline.reading.encoder import layers_and_width

_SENTENCES = 512
"""Read at once. Enough for batches of sentences of like length."""


class LayerReader:
    """Reads sentences that are words already with the elmo of a pipeline, and with what stands before it.

    Each sentence is a Doc, which elmo cuts into the spans that its `get_spans` gives.

    Args:
        nlp: a pipeline with one elmo.

    Raises:
        ValueError: as of `elmo_of`.
        OSError: its weights cannot be read.
    """

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        name, self._elmo = elmo_of(nlp)
        self._not_run = nlp.pipe_names[nlp.pipe_names.index(name) :]
        self.layers, self.width = layers_and_width(self._elmo.model)

    def __call__(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """(layers, n_words, width) of each sentence, in order. Memory holds some hundred sentences at a time."""
        model = self._elmo.model
        stream = iter(sentences)
        while group := list(itertools.islice(stream, _SENTENCES)):
            docs = [Doc(self._nlp.vocab, words=list(words)) for words in group]
            docs = list(self._nlp.pipe(docs, disable=self._not_run))
            yield from map(model.ops.to_numpy, model.predict(docs))
