"""Word index of a corpus on disk, with the occurrences of all words and the vectors of these occurrences."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc, Token
from thinc.api import to_numpy

from ...npy_file import read_npy
from ...pipeline.encode.spans import rule_spans
from ...pipeline.store.extensions import layers_of
from ...text.documents import json_lines
from ..normalize import normalize
from .exact import ExactNeighbors
from .index_files import IndexFormat, open_index
from .occurrences import Occurrence, Occurrences, sentence_text

OCCURRENCES = IndexFormat(
    name="spacy-elmo occurrences 1",
    command="`spacy elmo search index --unit word`",
    files=("words.jsonl", "sentences.jsonl", "places", "vectors", "spellings", "centre"),
    types={"layers": int, "width": int, "tokens": int, "about": dict},
)
"""File format of `OccurrenceIndex`."""

MAX_OCCURRENCES = 300
"""Default limit: largest number of occurrences of one word that have vectors in the index."""


class IndexedWord(NamedTuple):
    """A word of the corpus in the word index, case-folded."""

    word: str
    occurrences: int
    """Number of occurrences of the word in the corpus."""
    row: int
    """Row (in the array of vectors) of the first occurrence of the word that has a vector."""


class SimilarSpelling(NamedTuple):
    """A word of the corpus with a similar spelling to a given token.

    The word and the token have similar vectors in layer 0, which depends only on the characters of a word.
    """

    word: str
    occurrences: int
    """Number of occurrences of the word in the corpus."""
    cosine: float


class OccurrenceIndex:
    """Word index of a corpus, opened from a folder that `write_occurrences` has written.

    If a word occurs more often than a limit (by default `MAX_OCCURRENCES`), only some of its occurrences have
    vectors. These occurrences are spread evenly over the corpus. The vectors stay on disk. Memory holds the
    sentences, and one vector for each distinct word.

    Raises:
        OSError: the folder does not exist, or a file is missing.
        ValueError: the folder is not a word index, or is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        settings, files = open_index(Path(folder), OCCURRENCES)
        self.about: dict[str, Any] = settings["about"]
        """Metadata on the pipeline that has computed the vectors; see `source_of`."""
        self.tokens: int = settings["tokens"]
        """Number of tokens of the corpus, without whitespace."""
        self._sentences = list(json_lines(files["sentences.jsonl"], _sentence, "strict"))
        self._words = list(json_lines(files["words.jsonl"], _word, "strict"))
        self._rows = {word.word: number for number, word in enumerate(self._words)}
        self._places = read_npy(files["places"], "int32", axes=2)
        self._vectors = read_npy(files["vectors"], "float16", axes=3, mapped=True)
        self.centre = read_npy(files["centre"], "float32", axes=3)
        """Mean vector of all words of the corpus in each layer, (layers, 1, width) float32."""
        spellings = read_npy(files["spellings"], "float16", axes=2)
        layers, width, rows = settings["layers"], settings["width"], len(self._places)
        for name, array, shape in (
            ("places", self._places, (rows, 3)),
            ("vectors", self._vectors, (rows, layers - 1, width)),
            ("centre", self.centre, (layers, 1, width)),
            ("spellings", spellings, (len(self._words), width)),
        ):
            if array.shape != shape:
                raise _damaged(
                    files[name], f"has the shape {list(array.shape)} instead of {list(shape)}"
                )
        self._check_rows(files["words.jsonl"])
        self._check_places(files["places"])
        self._spellings = ExactNeighbors(width)
        self._spellings.add(normalize(spellings.astype("float32") - self.centre[0]))

    @property
    def sentences(self) -> int:
        """Number of sentences of the corpus."""
        return len(self._sentences)

    def count(self, word: str) -> int:
        """Return the number of occurrences of a word in the corpus. Case is ignored."""
        number = self._rows.get(word.casefold())
        return 0 if number is None else self._words[number].occurrences

    def find(self, word: str) -> Occurrences | None:
        """Return the occurrences of a word, and their vectors in all layers above layer 0. Case is ignored.

        Occurrences without a vector are left out. Return None if the word does not occur in the corpus.
        """
        number = self._rows.get(word.casefold())
        if number is None:
            return None
        following = self._words[number + 1 : number + 2]
        rows = slice(self._words[number].row, following[0].row if following else len(self._places))
        vectors = self._vectors[rows].astype("float32").transpose(1, 0, 2)
        items = [self._occurrence(*row) for row in self._places[rows].tolist()]
        views = [f"layer {layer + 1}" for layer in range(len(vectors))]
        return Occurrences(items, views, vectors, self.centre[1:])

    def query(self, token: Token, corpus: Occurrences) -> Occurrences:
        """Convert a token to an occurrence, to compare it with the occurrences of the word in the corpus.

        Args:
            token: a token of a Doc that has layers.
            corpus: occurrences of the word in the corpus, from `find`.
        """
        sentence = next(s for s in rule_spans([token.doc])[0] if s.start <= token.i < s.end)
        text, offsets = sentence_text(sentence)
        start, end = offsets[token.i]
        item = Occurrence(text[:start], text[start:end], text[end:], "")
        vectors = numpy_layers(token.doc)[1:, token.i : token.i + 1]
        return Occurrences([item], corpus.views, vectors, self.centre[1:])

    def similar_spellings(self, token: Token, n: int) -> list[SimilarSpelling]:
        """Return the n words of the corpus that are nearest to a token in layer 0, without the token's own
        word."""
        vector = normalize(numpy_layers(token.doc)[0, token.i] - self.centre[0, 0])
        numbers, cosines = self._spellings.search(vector, n + 1)
        similar = [
            SimilarSpelling(self._words[number].word, self._words[number].occurrences, cosine)
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        ]
        return [one for one in similar if one.word != token.text.casefold()][:n]

    def _check_rows(self, path: Path) -> None:
        """Check that each word has a vector, and that the vectors are in the order of the words."""
        borders = [*(word.row for word in self._words), len(self._places)]
        if borders[0] != 0 or any(start >= end for start, end in pairwise(borders)):
            raise _damaged(path, "does not have the rows of the words in order")

    def _check_places(self, path: Path) -> None:
        """Check that the sentence of each occurrence exists, and contains the occurrence."""
        sentences, starts, ends = self._places.T
        lengths = np.array([len(text) for _, text in self._sentences], dtype=np.int64)
        if not ((sentences >= 0) & (sentences < len(lengths))).all():
            raise _damaged(path, f"refers to other sentences than the {len(lengths)} of the index")
        if not ((starts >= 0) & (starts < ends) & (ends <= lengths[sentences])).all():
            raise _damaged(path, "has positions outside of their sentences")

    def _occurrence(self, sentence: int, start: int, end: int) -> Occurrence:
        source, text = self._sentences[sentence]
        return Occurrence(text[:start], text[start:end], text[end:], source)


def numpy_layers(doc: Doc) -> np.ndarray:
    """Return the layers of a Doc as a numpy array, (layers, tokens, width) float32.

    Raises:
        ValueError: the Doc has no layers.
    """
    layers = layers_of(doc)
    if layers is None:
        raise ValueError(
            'The Doc has no ELMo layers. Use a pipeline with an elmo that has store = "layers"'
        )
    return to_numpy(layers).astype("float32", copy=False)


def _damaged(path: Path, problem: str) -> ValueError:
    return ValueError(f"{path} {problem}. The index is damaged. Make it again")


def _sentence(row: object) -> tuple[str, str]:
    if isinstance(row, list) and [type(part) for part in row] == [str, str]:
        return row[0], row[1]
    raise ValueError(f"expected [name of a Doc, text], but got {json.dumps(row):.100}")


def _word(row: object) -> IndexedWord:
    if isinstance(row, list) and [type(part) for part in row] == [str, int, int]:
        return IndexedWord(*row)
    raise ValueError(f"expected [word, occurrences, row], but got {json.dumps(row):.100}")
