"""Text -> prepared corpus: a table of types with counts, and memory-mapped arrays of ids."""

from __future__ import annotations

import array
import hashlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..bilm.char_ids import BOS, EOS, UNK
from .config import Paths, Prepare
from .corpus import FILES, FORMAT, Corpus
from .text import LINES_PER_DOCUMENT, documents, text_files

_MIN_HELD_OUT_SENTENCES = 100
_HELD_OUT_SHARE = 0.01
_IDS_PER_WRITE = 1 << 20
_SENTENCES_PER_CHUNK = 1 << 16
_TEXTS_PER_PIPE = 1000


def prepare(paths: Paths, settings: Prepare, out: str | Path) -> Corpus:
    """Tokenize text and write a prepared corpus. The folder appears whole or not at all.

    Types are numbered by falling count in the training part, so that a vocabulary of any size is the head
    of the table. Memory holds the types, a few numbers per sentence and a digest per document, never the text.

    Raises:
        FileExistsError: `out` exists.
        FileNotFoundError: no text.
        ValueError: the text holds no sentence, or not enough to hold some out; bytes that are not UTF-8; a file that
            is no plain text, or is damaged; a language without a tokenizer.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; delete it, or choose another folder")
    if paths.raw_text is None:
        raise ValueError("paths.raw_text is needed: a file, a directory or a glob pattern")
    # Whatever a typing mistake can spoil comes first, before hours of tokenizing.
    files = text_files(paths.raw_text)
    dev_files = None if paths.dev_text is None else text_files(paths.dev_text)
    sentences = _sentence_splitter(settings)
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed here
    partial.mkdir(parents=True)
    try:
        table = _Types()
        train = _Part(partial / "raw-train.bin", table)
        train.add(documents(files, settings.encoding_errors), sentences)
        if not train.lengths:
            raise ValueError(f"No sentence in the text of {paths.raw_text!r}")
        if dev_files is not None:
            dev = _Part(partial / "raw-dev.bin", table)
            dev.add(documents(dev_files, settings.encoding_errors), sentences)
            if not dev.lengths:
                raise ValueError(f"No sentence in the held-out text of {paths.dev_text!r}")
            parts = {"train": _Choice.all(train), "dev": _Choice.all(dev)}
        else:
            held_out = _held_out(train.documents, len(train.lengths), settings.seed)
            parts = {"train": _Choice(train, ~held_out), "dev": _Choice(train, held_out)}
        _write(parts, [*table], partial)
        for raw in partial.glob("raw-*.bin"):
            raw.unlink()
        statement = {
            "format": FORMAT, "paths": paths.model_dump(), "prepare": settings.model_dump(),
        }  # fmt: skip
        (partial / "corpus.json").write_text(json.dumps(statement, indent=2), encoding="utf8")
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(out)


def _write(parts: dict[str, _Choice], types: list[str], folder: Path) -> None:
    counts = np.zeros(len(types), dtype=np.int64)
    for ids in parts["train"].ids():
        counts += np.bincount(ids, minlength=len(types))
    # The boundaries and <UNK> come first, as the sampled softmax and bilm-tf's vocabularies want them.
    order = np.concatenate([[0, 1, 2], 3 + np.argsort(-counts[3:], kind="stable")])
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    for name, part in parts.items():
        np.save(folder / FILES[name].offsets, part.offsets)
        with (folder / FILES[name].ids).open("wb") as file:
            # Written, not mapped: on a full disk a write is an error, a mapped page kills the process.
            header = {"descr": "<i4", "fortran_order": False, "shape": (int(part.offsets[-1]),)}
            np.lib.format.write_array_header_1_0(file, header)
            for ids in part.ids():
                file.write(rank[ids].astype("<i4", copy=False).data)
    (folder / "types.txt").write_bytes(
        "\n".join(types[i] for i in order).encode("utf8", "surrogatepass")
    )
    np.save(folder / "counts.npy", counts[order])


class _Types(dict[str, int]):
    """Word -> provisional id, in the order of first sight."""

    def __init__(self) -> None:
        super().__init__({BOS: 0, EOS: 1, UNK: 2})

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class _Part:
    """Ids of one text on disk, its sentences' lengths and its documents in memory."""

    def __init__(self, path: Path, table: _Types) -> None:
        self.path = path
        self.table = table
        self.lengths = array.array("i")
        self.documents: list[tuple[int, bytes]] = []
        """(sentences, digest) of each document."""

    def add(
        self,
        texts: Iterable[list[str]],
        sentences: Callable[[Iterable[list[str]]], Iterator[list[list[str]]]],
    ) -> None:
        buffer: list[int] = []
        with self.path.open("wb") as file:
            for document in sentences(texts):
                digest = hashlib.blake2b(digest_size=8)
                for sentence in document:
                    buffer.extend(map(self.table.__getitem__, sentence))
                    self.lengths.append(len(sentence))
                    digest.update(" ".join(sentence).encode("utf8", "surrogatepass") + b"\n")
                self.documents.append((len(document), digest.digest()))
                if len(buffer) >= _IDS_PER_WRITE:
                    file.write(np.asarray(buffer, dtype=np.int32).data)
                    buffer = []
            file.write(np.asarray(buffer, dtype=np.int32).data)


class _Choice:
    """Some sentences of a text."""

    def __init__(self, part: _Part, chosen: np.ndarray) -> None:
        self._path = part.path
        self._lengths = np.asarray(part.lengths, dtype=np.int64)
        self._chosen = chosen
        self.offsets = np.concatenate([[0], np.cumsum(self._lengths[chosen])])

    @classmethod
    def all(cls, part: _Part) -> _Choice:
        """Every sentence."""
        return cls(part, np.ones(len(part.lengths), dtype=bool))

    def ids(self) -> Iterator[np.ndarray]:
        """Provisional ids of the chosen sentences' words, end to end, in pieces that fit into memory."""
        with self._path.open("rb") as file:
            for first in range(0, len(self._lengths), _SENTENCES_PER_CHUNK):
                rows = slice(first, first + _SENTENCES_PER_CHUNK)
                lengths = self._lengths[rows]
                ids = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield ids[np.repeat(self._chosen[rows], lengths)]


def _sentence_splitter(
    settings: Prepare,
) -> Callable[[Iterable[list[str]]], Iterator[list[list[str]]]]:
    """A function from documents (lists of lines) to documents (lists of sentences of words)."""
    if settings.tokenized:
        return lambda texts: ([line.split() for line in lines] for lines in texts)
    import spacy

    from ..bilm.sentences import sentence_starts

    try:
        tokenizer: Any = spacy.blank(settings.lang).tokenizer
    except ImportError as error:  # no such language, or its tokenizer is a package of its own
        raise ValueError(
            f"prepare.lang = {settings.lang!r}: spaCy gives no tokenizer ({error}). Choose another language, install"
            " what it needs, or give text of words and set prepare.tokenized to true"
        ) from error

    def split(texts: Iterable[list[str]]) -> Iterator[list[list[str]]]:
        for lines in texts:
            document: list[list[str]] = []
            for doc in tokenizer.pipe(lines, batch_size=_TEXTS_PER_PIPE):
                words = [token.text for token in doc]
                starts = [*np.flatnonzero(sentence_starts(words)), len(words)]
                for start, end in itertools.pairwise(starts):
                    # Whitespace is no word: the component skips it too.
                    if sentence := [word for word in words[start:end] if not word.isspace()]:
                        document.append(sentence)
            if document:
                yield document

    return split


def _held_out(found: list[tuple[int, bytes]], n_sentences: int, seed: int) -> np.ndarray:
    """(sentences,) bool: the documents of the smallest seeded hashes, until both minima are met."""
    keys = [
        hashlib.blake2b(digest, salt=seed.to_bytes(16, "little")).digest() for _, digest in found
    ]
    sizes = [size for size, _ in found]
    chosen = np.zeros(len(found), dtype=bool)
    sentences = 0
    for number in sorted(range(len(found)), key=keys.__getitem__):
        if sentences >= _MIN_HELD_OUT_SENTENCES and chosen.sum() >= _HELD_OUT_SHARE * len(found):
            break
        chosen[number] = True
        sentences += sizes[number]
    if sentences < _MIN_HELD_OUT_SENTENCES or sentences > n_sentences // 2:
        raise ValueError(
            f"The text has {n_sentences} sentences in {len(found)} documents (a blank line ends one, and"
            f" {LINES_PER_DOCUMENT} lines do): too few, or too few documents, to hold out"
            f" {_MIN_HELD_OUT_SENTENCES} sentences and train on the rest."
            " Give more text, or held-out text of its own as paths.dev_text"
        )
    return np.repeat(chosen, sizes)
