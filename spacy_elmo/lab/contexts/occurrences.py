"""Search for the occurrences of a word in a corpus, and computation of their contextual vectors."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ...pipeline.component import Elmo
from ...pipeline.encode.encoder import layers_and_width
from ...pipeline.encode.spans import rule_spans
from ..corpora.documents import Document
from ..corpora.pipelines import LayerSelection, elmo_and_later, find_elmo
from ..corpora.senses import SenseInstance
from ..normalize import normalize

_BATCH_SIZE = 64
"""Number of Docs in a batch for the biLM."""
_Form: TypeAlias = tuple[str, ...]
"""One or several words, as a tuple of case-folded tokens."""


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a word in a sentence."""

    left: str
    """Text of the sentence before the word, with the space before the word."""
    word: str
    right: str
    """Text of the sentence after the word, with the space after the word."""
    source: str
    """Name of the file or Doc that contains the sentence."""
    sense: str | None = None

    def excerpt(self, words: int = 5) -> str:
        """Return the word in capitals, with up to `words` words before and after it."""
        left = re.findall(r"\S+\s*", self.left)
        right = re.findall(r"\s*\S+", self.right)
        near = [*left[max(len(left) - words, 0) :], self.word.upper(), *right[:words]]
        return "".join(near).strip()


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of a word in a text, and their contextual vectors."""

    items: list[Occurrence]
    """Occurrences in the order of the text."""
    views: list[str]
    """Names of the views. A view is a layer, or the average of the layers."""
    vectors: np.ndarray
    """Vector of each occurrence in each view, (views, occurrences, width) float32. If an occurrence consists
    of several tokens, its vector is the mean of the vectors of these tokens."""
    centre: np.ndarray
    """Mean vector of all words of the corpus, (views, 1, width) float32. If `find_occurrences` has found the
    occurrences: of all words in the documents that contain the word."""

    @functools.cached_property
    def unit_vectors(self) -> np.ndarray:
        """Vectors minus the centre, scaled to length 1, (views, occurrences, width).

        The centre is subtracted because it is a large part of all vectors, so otherwise all cosines would be
        high.
        """
        return normalize(self.vectors - self.centre)


def find_occurrences(
    nlp: Language, documents: Iterable[Document], word: str, layers: LayerSelection = "all"
) -> Occurrences:
    """Find the occurrences of a word in a corpus. The biLM only processes documents that contain the word.

    Args:
        nlp: a pipeline with an elmo component. The components after elmo do not run.
        word: a word, or several words separated by spaces. Case is ignored. The tokenizer can split the word,
            as in "don't". In documents with annotated senses, `word` is a lemma, and only annotated
            occurrences are found.
        layers: "all" returns vectors of every layer, "top" only of the last layer, and "average" only the
            average of the layers.

    Raises:
        ValueError: the word is empty, or does not occur in the text. See also `find_elmo`.
    """
    occurrences = _search(nlp, documents, _forms(nlp, word), layers)
    if occurrences is None:
        raise ValueError(f"The word {word!r} does not occur in the text")
    return occurrences


def find_in_sentences(
    nlp: Language,
    sentences: Iterable[str | list[str]],
    word: str,
    corpus: Occurrences,
    layers: LayerSelection = "all",
) -> Occurrences:
    """Find the first occurrence of a word in each sentence, to compare it with the occurrences in a corpus.

    Args:
        word: see `find_occurrences`. Instead of this spelling, a sentence can contain another spelling of the
            word that occurs in `corpus`.
        corpus: occurrences of the word in a corpus, from `find_occurrences`.
        layers: the value of `layers` with which `corpus` was computed.

    Raises:
        ValueError: the word is empty, or a sentence contains none of these spellings.
    """
    spellings = {word, *(occurrence.word for occurrence in corpus.items)}
    forms = {form for spelling in spellings for form in _forms(nlp, spelling)}
    items, vectors = [], [corpus.vectors[:, :0]]
    for sentence in sentences:
        occurrences = _search(nlp, [Document(sentence, "query")], forms, layers)
        if occurrences is None:
            raise ValueError(f"The query {sentence!r} does not contain the word {word!r}")
        items.append(occurrences.items[0])
        vectors.append(occurrences.vectors[:, :1])
    return dataclasses.replace(corpus, items=items, vectors=np.concatenate(vectors, axis=1))


class _Match(NamedTuple):
    """A Doc that contains the searched word, and the Spans of the word in this Doc."""

    doc: Doc
    source: str
    spans: list[tuple[Span, str | None]]
    """Occurrences of the word, and the annotated sense of each; None: no annotation."""


def _search(
    nlp: Language, documents: Iterable[Document], forms: Collection[_Form], layers: LayerSelection
) -> Occurrences | None:
    _, elmo = find_elmo(nlp)
    inputs = (
        (item if isinstance(item := document.text, str) else Doc(nlp.vocab, words=item), document)
        for document in documents
        if _may_contain(document, forms)
    )
    matches = (
        _Match(doc, Path(document.name).name, spans)
        for doc, document in nlp.pipe(inputs, as_tuples=True, disable=elmo_and_later(nlp))
        if (spans := list(_spans(doc, document, forms)))
    )
    return _gather(elmo, matches, layers)


def _may_contain(document: Document, forms: Collection[_Form]) -> bool:
    """Return False if a document certainly does not contain the word.

    Without this quick check, most of the time for a rare word would be spent on tokenizing other documents.
    """
    if document.senses is not None:
        return any(_lemma(instance) in forms for instance in document.senses)
    item = document.text
    text = (item if isinstance(item, str) else " ".join(item)).casefold()
    return any(all(part in text for part in form) for form in forms)


def _spans(
    doc: Doc, document: Document, forms: Collection[_Form]
) -> Iterator[tuple[Span, str | None]]:
    if document.senses is not None:
        for instance in document.senses:
            if _lemma(instance) in forms:
                yield doc[instance.start : instance.end], instance.senses[0]
        return
    words = tuple(token.text.casefold() for token in doc)
    for start in range(len(words)):
        for length in {len(form) for form in forms}:
            if words[start : start + length] in forms:
                yield doc[start : start + length], None


def _forms(nlp: Language, word: str) -> set[_Form]:
    """Return the possible tokenizations of a word: split at spaces, and split by the tokenizer ("do n't")."""
    form = _form(word)
    if not form:
        raise ValueError(f"{word!r} is not a word. Give a word that occurs in the text")
    # Tokenizers have exceptions in lower case or in the usual case, so try both.
    docs = (nlp.make_doc(text) for text in {" ".join(form), " ".join(word.split())})
    return {form, *(tuple(token.text.casefold() for token in doc) for doc in docs)}


def _form(word: str) -> _Form:
    return tuple(word.casefold().split())


def _lemma(instance: SenseInstance) -> _Form:
    """Return the words of the lemma of an annotated word: ("primary", "election") for `primary_election%1:04:00::`."""
    return _form(instance.senses[0].partition("%")[0].replace("_", " "))


def _gather(elmo: Elmo, matches: Iterable[_Match], layers: LayerSelection) -> Occurrences | None:
    items: list[Occurrence] = []
    vectors = []
    total, words = np.zeros(()), 0
    for batch in minibatch(matches, _BATCH_SIZE):
        docs = [doc for doc, _, _ in batch]
        predictions = elmo.model.predict(docs)
        for (doc, source, spans), doc_layers, sentences in zip(
            batch, predictions, rule_spans(docs), strict=True
        ):
            views = _select(elmo.model.ops.to_numpy(doc_layers), layers)
            total = total + views.sum(axis=1, keepdims=True, dtype="float64")
            words += sum(not token.is_space for token in doc)
            for span, sense in spans:
                items.append(_occurrence(span, sentences, source, sense))
                vectors.append(views[:, span.start : span.end].mean(axis=1))
    if not items:
        return None
    return Occurrences(
        items,
        _view_names(elmo, layers),
        np.stack(vectors, axis=1),
        (total / words).astype("float32"),
    )


def _select(layers: np.ndarray, selection: LayerSelection) -> np.ndarray:
    """Select layers, or average them, as `find_occurrences` describes: (layers, tokens, width) ->
    (views, tokens, width) float32."""
    layers = layers.astype("float32", copy=False)
    if selection == "average":
        return layers.mean(axis=0, keepdims=True)
    return layers[-1:] if selection == "top" else layers


def _view_names(elmo: Elmo, selection: LayerSelection) -> list[str]:
    if selection == "average":
        return ["average of the layers"]
    names = [f"layer {layer}" for layer in range(layers_and_width(elmo.model)[0])]
    return names[-1:] if selection == "top" else names


def _occurrence(
    span: Span, sentences: Iterable[Span], source: str, sense: str | None
) -> Occurrence:
    around = next(s for s in sentences if s.start <= span.start < s.end)
    text, offsets = sentence_text(span.doc[around.start : max(around.end, span.end)])
    start, end = offsets[span.start][0], offsets[span.end - 1][1]
    return Occurrence(text[:start], text[start:end], text[end:], source, sense)


def sentence_text(sentence: Span) -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the text of a sentence with single spaces, and the positions of its tokens in this text.

    Returns:
        The text, and a mapping from the index of each token in the Doc to its (start, end) in the text. The
        mapping has no whitespace tokens.
    """
    text, offsets, space = "", {}, ""
    for token in sentence:
        if not token.is_space:
            start = len(text) + len(space)
            text += space + token.text
            offsets[token.i] = (start, len(text))
            space = ""
        if text and (token.whitespace_ or token.is_space):
            space = " "
    return text, offsets
