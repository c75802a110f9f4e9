"""The occurrences of a word in a corpus: their contextual vectors, nearest neighbors (Peters et al. 2018, table 4)
and 2-D maps."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..pipeline.encode.encoder import layers_and_width
from ..pipeline.encode.spans import rule_spans
from .documents import Document
from .normalize import normalize
from .pipelines import elmo_and_later, find_elmo
from .senses import SenseInstance

_BATCH_SIZE = 64
"""Number of Docs in a batch for the biLM."""
_DIGITS = 5
"""Digits of a cosine that are compared. Smaller differences are rounding errors, for example in layer 0."""
_WORDS_THAT_DIFFER = 2
_TOLERANCE = 1e-5
"""Singular values below this share of their maximum (for n vectors of length 1) are rounding errors."""
_SPACES = re.compile(r"\s+")
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
    """Name of the document, such as "letters.txt:12"."""
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
    """Names of the layers."""
    vectors: np.ndarray
    """Vector of each occurrence in each layer, (layers, occurrences, width) float32. If an occurrence consists
    of several tokens, its vector is the mean of the vectors of these tokens."""
    center: np.ndarray
    """Mean vector, (layers, 1, width) float32: of all words of the corpus in `WordIndex`, of all words in the documents
    that contain the word in `find_occurrences`."""

    @property
    def unit_vectors(self) -> np.ndarray:
        """Vectors minus the center, scaled to length 1, (layers, occurrences, width).

        The center is subtracted because it is a large part of all vectors, so otherwise all cosines would be
        high.
        """
        return normalize(self.vectors - self.center)


def find_occurrences(nlp: Language, documents: Iterable[Document], word: str) -> Occurrences:
    """Find the occurrences of a word in a corpus. The biLM only processes documents that contain the word, and the
    components after elmo do not run.

    Args:
        word: a word, or several words separated by spaces. Case is ignored. The tokenizer can split the word,
            as in "don't". In documents with annotated senses, `word` is a lemma, and only annotated
            occurrences are found.
    """
    items: list[Occurrence] = []
    vectors = []
    total, words = np.zeros(()), 0
    for match in _matches(nlp, documents, _forms(nlp, word)):
        total = total + match.layers.sum(axis=1, keepdims=True, dtype="float64")
        words += sum(not token.is_space for token in match.doc)
        items += [occurrence_of(span, match.source, sense) for span, sense in match.spans]
        vectors += [match.layers[:, span.start : span.end].mean(axis=1) for span, _ in match.spans]
    if not items:
        raise ValueError(f"The word {word!r} does not occur in the text")
    n_layers, _ = layers_and_width(find_elmo(nlp)[1].model)
    return Occurrences(
        items,
        [f"layer {layer}" for layer in range(n_layers)],
        np.stack(vectors, axis=1),
        (total / words).astype("float32"),
    )


def find_in_sentences(
    nlp: Language, sentences: Iterable[str | list[str]], word: str, corpus: Occurrences
) -> Occurrences:
    """Find the first occurrence of a word, or of one of its spellings in a corpus, in each sentence, to compare it with
    the occurrences in the corpus."""
    spellings = {word, *(occurrence.word for occurrence in corpus.items)}
    forms = {form for spelling in spellings for form in _forms(nlp, spelling)}
    items, vectors = [], [corpus.vectors[:, :0]]
    for sentence in sentences:
        match = next(_matches(nlp, [Document(sentence, "query")], forms), None)
        if match is None:
            raise ValueError(f"The query {sentence!r} does not contain the word {word!r}")
        first, sense = match.spans[0]
        items.append(occurrence_of(first, match.source, sense))
        vectors.append(match.layers[:, first.start : first.end].mean(axis=1, keepdims=True))
    return dataclasses.replace(corpus, items=items, vectors=np.concatenate(vectors, axis=1))


class _Match(NamedTuple):
    """A Doc that contains the searched word."""

    doc: Doc
    source: str
    spans: list[tuple[Span, str | None]]
    """Occurrences of the word, and the annotated sense of each; None: no annotation."""
    layers: np.ndarray
    """Vectors of the tokens, (layers, tokens, width) float32."""


def _matches(
    nlp: Language, documents: Iterable[Document], forms: Collection[_Form]
) -> Iterator[_Match]:
    model = find_elmo(nlp)[1].model
    inputs = (
        (text if isinstance(text := document.text, str) else Doc(nlp.vocab, words=text), document)
        for document in documents
        if _may_contain(document, forms)
    )
    matches = (
        (doc, Path(document.name).name, spans)
        for doc, document in nlp.pipe(inputs, as_tuples=True, disable=elmo_and_later(nlp))
        if (spans := list(_spans(doc, document, forms)))
    )
    for batch in minibatch(matches, _BATCH_SIZE):
        predictions = model.predict([doc for doc, _, _ in batch])
        for (doc, source, spans), layers in zip(batch, predictions, strict=True):
            vectors = model.ops.to_numpy(layers).astype("float32", copy=False)
            yield _Match(doc, source, spans, vectors)


def _may_contain(document: Document, forms: Collection[_Form]) -> bool:
    """Return False if a document certainly does not contain the word, so that it need not be tokenized."""
    if document.senses is not None:
        return any(_lemma(instance) in forms for instance in document.senses)
    text = document.text if isinstance(document.text, str) else " ".join(document.text)
    return any(all(part in text.casefold() for part in form) for form in forms)


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
    form = tuple(word.casefold().split())
    if not form:
        raise ValueError(f"{word!r} is not a word. Give a word that occurs in the text")
    # Tokenizers have exceptions in lower case or in the usual case, so try both.
    docs = (nlp.make_doc(text) for text in {" ".join(form), " ".join(word.split())})
    return {form, *(tuple(token.text.casefold() for token in doc) for doc in docs)}


def _lemma(instance: SenseInstance) -> _Form:
    """Return the words of the lemma of an annotated word: ("primary", "election") for `primary_election%1:04:00::`."""
    return tuple(instance.senses[0].partition("%")[0].casefold().split("_"))


def occurrence_of(span: Span, source: str, sense: str | None = None) -> Occurrence:
    """Return the occurrence at a Span, with the sentence that begins before it."""
    sentence = next(s for s in rule_spans([span.doc])[0] if s.start <= span.start < s.end)
    around = span.doc[sentence.start : max(sentence.end, span.end)]
    tokens = [(token.text, bool(token.whitespace_)) for token in around]
    first = span.start - around.start
    return occurrence_in(tokens, first, first + len(span), source, sense)


def occurrence_in(
    sentence: Sequence[tuple[str, bool]],
    start: int,
    end: int,
    source: str,
    sense: str | None = None,
) -> Occurrence:
    """Return an occurrence, with single spaces in the text of its sentence, which is given as the text of each token,
    and whether a space follows it."""
    parts = (sentence[:start], sentence[start:end], sentence[end:])
    left, word, right = ("".join(text + " " * space for text, space in part) for part in parts)
    bare = word.rstrip()
    left, bare, right = (_SPACES.sub(" ", text) for text in (left, bare, word[len(bare) :] + right))
    return Occurrence(left.lstrip(), bare, right.rstrip(), source, sense)


class Neighbor(NamedTuple):
    """One of the occurrences of a word in a corpus, and its similarity to a query."""

    occurrence: Occurrence
    cosine: float
    """Cosine of the two vectors, after subtracting the mean of the corpus from both."""


def nearest(queries: Occurrences, corpus: Occurrences, n: int) -> list[list[list[Neighbor]]]:
    """Return the n nearest occurrences in a corpus for each query and each layer, nearest first.

    Equally near occurrences are in the order of the text. Of several with the same two words on each side, only the
    nearest is returned, because many texts repeat phrases.
    """
    cosines = np.einsum("vqw,vow->qvo", queries.unit_vectors, corpus.unit_vectors)
    return [[_distinct(corpus.items, view, n) for view in query] for query in cosines]


def _distinct(occurrences: list[Occurrence], cosines: np.ndarray, n: int) -> list[Neighbor]:
    phrases: dict[str, int] = {}
    for number in np.argsort(-cosines.round(_DIGITS), kind="stable").tolist():
        if len(phrases) == n:
            break
        phrases.setdefault(occurrences[number].excerpt(_WORDS_THAT_DIFFER), number)
    return [Neighbor(occurrences[number], float(cosines[number])) for number in phrases.values()]


@dataclass(frozen=True)
class Plane:
    """Vectors of n occurrences and m queries in one layer, projected to two dimensions."""

    view: str
    points: np.ndarray
    """Coordinates of the occurrences, (n, 2)."""
    queries: np.ndarray
    """Coordinates of the queries, (m, 2). The queries do not influence the projection."""
    shares: tuple[float, float]
    """Share of the variance that each axis explains, 0 to 1."""


def project(corpus: Occurrences, queries: Occurrences) -> list[Plane]:
    """Project the vectors of occurrences, and of queries, to the first two principal components of the occurrences, in
    each layer.

    Vectors are centered and scaled to length 1, as in `nearest`. The sign of each component is chosen so that
    the loading with the largest magnitude is positive.
    """
    views = zip(corpus.views, corpus.unit_vectors, queries.unit_vectors, strict=True)
    return [_plane(*view) for view in views]


def drawable(planes: Sequence[Plane]) -> list[Plane]:
    """Return the projections without those whose points are on one line, such as layer 0 of a word with one or two
    spellings. If none would be left, return the last one."""
    return [plane for plane in planes if plane.shares[1] > 0] or list(planes[-1:])


def _plane(view: str, vectors: np.ndarray, queries: np.ndarray) -> Plane:
    mean = vectors.mean(axis=0)
    centered = (vectors - mean).astype("float64")
    _, values, components = np.linalg.svd(centered, full_matrices=False)
    variances = np.where(values > _TOLERANCE * len(vectors) ** 0.5, values, 0) ** 2
    # A single occurrence has only one component, with a variance of 0.
    axes = np.zeros((2, vectors.shape[1]))
    kept = np.flatnonzero(variances[:2])
    axes[kept] = components[kept]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
    total = variances.sum() or 1.0
    first, second = (*variances[:2] / total, 0.0, 0.0)[:2]
    return Plane(view, centered @ axes.T, (queries - mean) @ axes.T, (float(first), float(second)))
