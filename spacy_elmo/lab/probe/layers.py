"""Computation of the biLM layers of tokenized sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...pipeline.encode.encoder import layers_and_width
from ..corpora.pipelines import elmo_and_later, find_elmo

_SENTENCES = 512
"""Number of sentences to process at once. This number is large, so that batches contain sentences of similar
lengths."""


class LayerReader:
    """Callable that computes the biLM layers of tokenized sentences with a pipeline.

    Only the components before elmo run, and then elmo's model. Each sentence becomes a Doc, which the model
    splits into Spans by its `get_spans`.

    Args:
        nlp: a pipeline with one elmo component.
        progress: function that is called after every 512 sentences and at the end. Its argument is the number
            of sentences since the previous call.

    Raises:
        ValueError: see `find_elmo`.
        OSError: the weights of the pipeline cannot be read.
    """

    def __init__(self, nlp: Language, progress: Callable[[int], object] | None = None) -> None:
        self._nlp = nlp
        self._progress = progress
        _, self._elmo = find_elmo(nlp)
        self._disabled = elmo_and_later(nlp)
        self.layers, self.width = layers_and_width(self._elmo.model)

    def __call__(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        """Yield the layers of each sentence of n words, (layers, n, width), in the order of the sentences.

        Memory holds the layers of at most 512 sentences.
        """
        model = self._elmo.model
        stream = iter(sentences)
        while group := list(itertools.islice(stream, _SENTENCES)):
            docs = [Doc(self._nlp.vocab, words=list(words)) for words in group]
            docs = list(self._nlp.pipe(docs, disable=self._disabled))
            yield from map(model.ops.to_numpy, model.predict(docs))
            if self._progress is not None:
                self._progress(len(docs))
