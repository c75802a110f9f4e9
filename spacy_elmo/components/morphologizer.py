"""A trainable morphologizer that remembers the analyses of the words in its training data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline.morphologizer import Morphologizer
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import to_numpy

KNOWN = 10
"""Factor of a known analysis of a word. Of 1, 3, 10 and 30, the best on the dev parts of four small treebanks."""


class LexiconMorphologizer(Morphologizer):
    """The component that `make_lexicon_morphologizer` creates. A small treebank has few examples of each analysis, so
    the network is often not sure."""

    # spaCy reads the names of the settings of `[initialize.components]` from the signature.
    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: dict[str, Any] | None = None,
    ) -> None:
        """Make the labels, and initialize the model; see `Morphologizer.initialize`."""
        super().initialize(get_examples, nlp=nlp, labels=labels)
        # Everything in `cfg` is saved with the component.
        self.cfg["lexicon"] = {}

    def update(self, examples: Iterable[Example], **options: Any) -> dict[str, float]:
        """Train the model, and add the words to the lexicon; see `Morphologizer.update`."""
        analyses = {
            (self.cfg["labels_morph"][label], self.cfg["labels_pos"].get(label, 0)): number
            for number, label in enumerate(self.labels)
        }
        # Not in `initialize`, which sees only the start of a stream, and not at all what a sourced component reads.
        lexicon = self.cfg.setdefault("lexicon", {})
        for token in (token for example in examples for token in example.reference):
            number = analyses.get((str(token.morph), token.pos))
            if number is not None and (token.pos or token.has_morph()):
                lexicon[token.text] = sorted({number, *lexicon.get(token.text, [])})
        return super().update(examples, **options)

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """Return the number of a label for each word of each Doc."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return super().predict(docs)
        # spaCy's taggers do not normalize their scores in prediction, unless this is set.
        self.model.get_ref("softmax").attrs["softmax_normalize"] = True
        parts = [self.cfg["labels_pos"].get(label, 0) for label in self.labels]
        distinct, part_of = np.unique(parts, return_inverse=True)
        same_part = np.equal.outer(distinct, parts).astype("float32")
        lexicon = self.cfg.get("lexicon", {})
        guesses = []
        for doc, scores in zip(docs, self.model.predict(docs), strict=True):
            probabilities = to_numpy(scores)
            # Not numpy's matrix product, whose threads wait for each other on a busy machine.
            product = probabilities * np.einsum("wl,pl->wp", probabilities, same_part)[:, part_of]
            for row, token in zip(product, doc, strict=True):
                row[lexicon.get(token.text, [])] *= KNOWN
            guesses.append(product.argmax(axis=1))
        return guesses
