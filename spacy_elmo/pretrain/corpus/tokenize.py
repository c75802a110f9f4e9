"""Documents to sentences of numbered words: the part of preparing that can run in several processes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...text.documents import Document
from ...text.sentences import SPACE, starts_of_kinds, word_kinds
from ..config import Prepare

_WORDS_KEPT = 100_000

if TYPE_CHECKING:
    from spacy.language import Language


@dataclass(frozen=True)
class Piece:
    """N words in S sentences of D documents. Documents without a word are left out."""

    types: list[str]
    """The distinct words, in the order of first sight."""
    words: np.ndarray
    """(N,) int32, which of the types."""
    lengths: np.ndarray
    """(S,) int32, words of each sentence."""
    documents: np.ndarray
    """(D,) int32, sentences of each document."""
    document_digests: np.ndarray
    """(D,) uint64, equal for the same sentences."""
    sentence_digests: np.ndarray
    """(S,) uint64, equal for the same words."""


class DocumentTokenizer:
    """Tokenizes documents and cuts them into sentences, by the rule that the component uses (bilm/sentences.py).

    Raises:
        ValueError: `lang` or `tokenizer` names none that spaCy can make.
    """

    def __init__(self, settings: Prepare) -> None:
        self._settings = settings
        self._nlp = None if settings.tokenized else _blank(settings)

    def __reduce__(self) -> tuple[type[DocumentTokenizer], tuple[Prepare]]:
        # A new process makes its own tokenizer.
        return DocumentTokenizer, (self._settings,)

    def __call__(self, documents: Sequence[Document]) -> Piece:
        """The sentences of some documents, end to end."""
        numbers = Numbers()
        if self._nlp is None:
            words, sizes = _numbered(
                documents, numbers, lambda line: map(numbers.__getitem__, line.split())
            )
        else:
            with self._memory(self._nlp):
                words, sizes = _numbered(documents, numbers, _reader(self._nlp, numbers))
        types = [*numbers]
        kinds = word_kinds(types)
        space = kinds & SPACE > 0
        kinds = kinds[words]
        if self._settings.tokenized:
            # A line is a sentence. Words of no kind do not start another.
            lines = np.array([not document.words for document in documents], dtype=bool)
            kinds[np.repeat(lines, sizes) & ~space[words]] = 0
        starts = starts_of_kinds(kinds)
        kept = ~space[words]
        lengths = np.bincount((np.cumsum(starts) - 1)[kept], minlength=int(starts.sum()))
        owners = np.repeat(np.arange(len(documents)), sizes)[starts]
        per_document = np.bincount(owners[lengths > 0])
        rank = np.cumsum(~space, dtype=np.int32) - 1
        return _piece(
            [word for word, is_space in zip(types, space, strict=True) if not is_space],
            rank[words[kept]],
            lengths[lengths > 0].astype(np.int32),
            per_document[per_document > 0].astype(np.int32),
        )

    @staticmethod
    def _memory(nlp: Language) -> AbstractContextManager[object]:
        """Let a vocabulary that knows enough words forget the next ones again, or it would grow with the text.

        Not from the start: in a memory zone the tokenizer's cache learns nothing, which makes it three times slower.
        """
        known = len(nlp.vocab.strings) >= _WORDS_KEPT
        return nlp.memory_zone() if known else contextlib.nullcontext()


class Numbers(dict[str, int]):
    """Word -> number, in the order of first sight. Words given at the start have the first numbers."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        super().__init__((word, number) for number, word in enumerate(words))

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def _numbered(
    documents: Sequence[Document],
    numbers: Numbers,
    read: Callable[[str], Any],
) -> tuple[np.ndarray, np.ndarray]:
    """(words with a newline after each line and each document, (D,) how many of each document)."""
    newline = numbers["\n"]
    words: list[int] = []
    ends = [0]
    for document in documents:
        if document.words:
            words.extend(map(numbers.__getitem__, document.text))
            words.append(newline)
        else:
            for line in document.text:
                words.extend(read(line))
                words.append(newline)
        ends.append(len(words))
    return np.array(words, dtype=np.int32), np.diff(ends)


def _reader(nlp: Language, numbers: Numbers) -> Callable[[str], Any]:
    """A function from a line to the numbers of its tokens. It asks for a token's text once per distinct token."""
    from spacy.attrs import ORTH

    strings, tokenizer = nlp.vocab.strings, nlp.tokenizer

    class ByHash(dict[int, int]):
        def __missing__(self, key: int) -> int:
            self[key] = number = numbers[strings[key]]
            return number

    by_hash = ByHash()
    return lambda line: map(by_hash.__getitem__, tokenizer(line).to_array([ORTH]).tolist())


def _piece(
    types: list[str], words: np.ndarray, lengths: np.ndarray, documents: np.ndarray
) -> Piece:
    text = [types[word] for word in words.tolist()]
    sentences = []
    start = 0
    for length in lengths.tolist():
        sentences.append(" ".join(text[start : start + length]).encode("utf8"))
        start += length
    whole = []
    start = 0
    for size in documents.tolist():
        whole.append(b"\n".join([*sentences[start : start + size], b""]))
        start += size
    return Piece(types, words, lengths, documents, _digests(whole), _digests(sentences))


def _digests(texts: list[bytes]) -> np.ndarray:
    """(texts,) uint64. Of 64 bits: two of a million different texts are taken for one with a chance of 3e-8."""
    return np.frombuffer(
        b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts), dtype="<u8"
    )


def _blank(settings: Prepare) -> Language:
    import spacy

    config = {} if settings.tokenizer is None else {"nlp": {"tokenizer": settings.tokenizer}}
    try:
        return spacy.blank(settings.lang, config=config)
    except (ImportError, ValueError) as error:  # an ImportError also for an unknown language
        raise ValueError(
            f"prepare.lang = {settings.lang!r}, tokenizer = {settings.tokenizer!r}: spaCy gives no tokenizer. Choose"
            " another, install what it needs, or give text of words and set prepare.tokenized to true:\n"
            + str(error).strip()
        ) from error
