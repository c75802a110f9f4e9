"""Where a word occurs in a corpus, and the vectors that it has there."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ...corpora.items import Item
from ...corpora.passages import Passage
from ...corpora.pipelines import elmo_of
from ...corpora.senses import SenseInstance
from ...embed.embedder import Layers
from ...pipeline.component import Elmo
from ...pipeline.reading.spans import rule_spans
from ...search.unit import unit

_DOCS_AT_ONCE = 64
_Form: TypeAlias = tuple[str, ...]
"""The words of a form, without regard to case."""


@dataclass(frozen=True)
class Occurrence:
    """A word in its sentence."""

    left: str
    """What the sentence says before it, with the space between."""
    word: str
    right: str
    """What the sentence says after it, with the space between."""
    source: str
    """The name of its file."""
    sense: str | None = None

    def excerpt(self, words: int = 5) -> str:
        """The word in capitals, with a few words on each side."""
        left = re.findall(r"\S+\s*", self.left)
        right = re.findall(r"\s*\S+", self.right)
        near = [*left[max(len(left) - words, 0) :], self.word.upper(), *right[:words]]
        return "".join(near).strip()


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of a word, and their vectors."""

    found: list[Occurrence]
    """In the order of the text."""
    views: list[str]
    """What the vectors are: the names of layers, or of their average."""
    vectors: np.ndarray
    """(views, n, width) float32; of several words, their mean."""
    centre: np.ndarray
    """(views, 1, width) float32: the mean of all words, whichever they are, of the passages with an occurrence."""

    @functools.cached_property
    def directions(self) -> np.ndarray:
        """(views, n, width) vectors as seen from the centre, of length 1.

        What all words share says nothing about any of them, and would make all of them look alike.
        """
        return unit(self.vectors - self.centre)


def find_occurrences(
    nlp: Language, passages: Iterable[Passage], word: str, layers: Layers = "all"
) -> Occurrences:
    """Find a word in a corpus. The biLM reads the passages that have it, and no others.

    Args:
        nlp: with an elmo; what comes after elmo does not run.
        word: in any case, with spaces if it is several words; the tokenizer may split it, as "don't". Where senses are
            annotated it is the lemma, and only what has a sense is found.
        layers: "all" gives a view for each layer, "average" and "top" give one.

    Raises:
        ValueError: as of `elmo_of`; there is no word, or it does not occur.
    """
    occurrences = _search(nlp, passages, _forms(nlp, word), layers)
    if occurrences is None:
        raise ValueError(f"{word!r} does not occur in the text")
    return occurrences


def find_in_sentences(
    nlp: Language, sentences: Iterable[Item], word: str, corpus: Occurrences, layers: Layers = "all"
) -> Occurrences:
    """The first occurrence of a word in each of some sentences, to be compared with those in a corpus.

    Args:
        word: as of `find_occurrences`; other forms of it that the corpus has will do.
        layers: those of `corpus`.

    Raises:
        ValueError: there is no word, or a sentence does not have it.
    """
    spelt = {word, *(occurrence.word for occurrence in corpus.found)}
    forms = {form for spelling in spelt for form in _forms(nlp, spelling)}
    found, vectors = [], [corpus.vectors[:, :0]]
    for sentence in sentences:
        read = _search(nlp, [Passage(sentence, "query")], forms, layers)
        if read is None:
            raise ValueError(f"The query {sentence!r} does not have the word {word!r}")
        found.append(read.found[0])
        vectors.append(read.vectors[:, :1])
    return dataclasses.replace(corpus, found=found, vectors=np.concatenate(vectors, axis=1))


class _Read(NamedTuple):
    """A Doc with the word."""

    doc: Doc
    source: str
    spans: list[tuple[Span, str | None]]
    """Where it is, and its sense there."""


def _search(
    nlp: Language, passages: Iterable[Passage], forms: Collection[_Form], layers: Layers
) -> Occurrences | None:
    name, elmo = elmo_of(nlp)
    not_run = nlp.pipe_names[nlp.pipe_names.index(name) :]
    given = (
        (item if isinstance(item := passage.item, str) else Doc(nlp.vocab, words=item), passage)
        for passage in passages
        if _may_hold(passage, forms)
    )
    read = (
        _Read(doc, passage.source, spans)
        for doc, passage in nlp.pipe(given, as_tuples=True, disable=not_run)
        if (spans := list(_spans(doc, passage, forms)))
    )
    return _gather(elmo, read, layers)


def _may_hold(passage: Passage, forms: Collection[_Form]) -> bool:
    """What can be said without the tokenizer, which takes most of the time where a word is rare."""
    if passage.senses is not None:
        return any(_lemma(instance) in forms for instance in passage.senses)
    item = passage.item
    text = (item if isinstance(item, str) else " ".join(item)).casefold()
    return any(all(part in text for part in form) for form in forms)


def _spans(
    doc: Doc, passage: Passage, forms: Collection[_Form]
) -> Iterator[tuple[Span, str | None]]:
    if passage.senses is not None:
        for instance in passage.senses:
            if _lemma(instance) in forms:
                yield doc[instance.start : instance.end], instance.senses[0]
        return
    words = tuple(token.text.casefold() for token in doc)
    for start in range(len(words)):
        for length in {len(form) for form in forms}:
            if words[start : start + length] in forms:
                yield doc[start : start + length], None


def _forms(nlp: Language, word: str) -> set[_Form]:
    """Its words by its spaces, as in text that came as words; and as the tokenizer splits it, "don't" in two."""
    spelt = _form(word)
    if not spelt:
        raise ValueError(f"{word!r} is no word: give one that occurs in the text")
    # Its exceptions know a word in lower case, and some of them as it is.
    made = (nlp.make_doc(text) for text in {" ".join(spelt), " ".join(word.split())})
    return {spelt, *(tuple(token.text.casefold() for token in doc) for doc in made)}


def _form(word: str) -> _Form:
    return tuple(word.casefold().split())


def _lemma(instance: SenseInstance) -> _Form:
    """The words of "primary_election%1:04:00::"."""
    return _form(instance.senses[0].partition("%")[0].replace("_", " "))


def _gather(elmo: Elmo, read: Iterable[_Read], layers: Layers) -> Occurrences | None:
    found: list[Occurrence] = []
    vectors = []
    total, words = np.zeros(()), 0
    for batch in minibatch(read, _DOCS_AT_ONCE):
        docs = [doc for doc, _, _ in batch]
        computed = elmo.model.predict(docs)
        for (doc, source, spans), own, sentences in zip(
            batch, computed, rule_spans(docs), strict=True
        ):
            viewed = _viewed(elmo.model.ops.to_numpy(own), layers)
            total = total + viewed.sum(axis=1, keepdims=True, dtype="float64")
            words += sum(not token.is_space for token in doc)
            for span, sense in spans:
                found.append(_occurrence(span, sentences, source, sense))
                vectors.append(viewed[:, span.start : span.end].mean(axis=1))
    if not found:
        return None
    return Occurrences(
        found,
        _names(elmo, layers),
        np.stack(vectors, axis=1),
        (total / words).astype("float32"),
    )


def _viewed(layers: np.ndarray, wanted: Layers) -> np.ndarray:
    """(views, n_tokens, width) float32 of (layers, n_tokens, width)."""
    layers = layers.astype("float32", copy=False)
    if wanted == "average":
        return layers.mean(axis=0, keepdims=True)
    return layers[-1:] if wanted == "top" else layers


def _names(elmo: Elmo, wanted: Layers) -> list[str]:
    if wanted == "average":
        return ["average of the layers"]
    names = [f"layer {layer}" for layer in range(elmo.layers_and_width()[0])]
    return names[-1:] if wanted == "top" else names


def _occurrence(
    span: Span, sentences: Iterable[Span], source: str, sense: str | None
) -> Occurrence:
    doc = span.doc
    around = next(s for s in sentences if s.start <= span.start < s.end)
    return Occurrence(
        left=_text(doc[around.start : span.start].text_with_ws).lstrip(),
        word=_text(span.text),
        right=_text(span[-1].whitespace_ + doc[span.end : max(around.end, span.end)].text).rstrip(),
        source=source,
        sense=sense,
    )


def _text(text: str) -> str:
    return re.sub(r"\s+", " ", text)
