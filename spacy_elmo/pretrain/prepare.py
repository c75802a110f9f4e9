"""Text -> prepared corpus: a table of types with counts, and memory-mapped arrays of ids."""

from __future__ import annotations

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
from .text import documents, text_files

_MIN_HELD_OUT_SENTENCES = 100
_HELD_OUT_SHARE = 0.01
_IDS_PER_WRITE = 1 << 20
_TEXTS_PER_PIPE = 1000


def prepare(paths: Paths, settings: Prepare, out: str | Path) -> Corpus:
    """Tokenize text and write a prepared corpus. The folder appears whole or not at all.

    Types are numbered by falling count in the training part, so that a vocabulary of any size is the head
    of the table. Memory holds the types and the documents' borders, never the text.

    Raises:
        FileExistsError: `out` exists.
        FileNotFoundError: no text.
        ValueError: the text holds no sentence, or not enough to hold some out; bytes that are not UTF-8.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; delete it, or choose another folder")
    if paths.raw_text is None:
        raise ValueError("paths.raw_text is needed: a file, a directory or a glob pattern")
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed here
    partial.mkdir(parents=True)
    try:
        _write(paths, settings, partial)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(out)


def _write(paths: Paths, settings: Prepare, folder: Path) -> None:
    assert paths.raw_text is not None
    sentences = _sentence_splitter(settings)
    table = _Types()
    train = _Part(folder / "raw-train.bin", table)
    train.add(documents(text_files(paths.raw_text), settings.encoding_errors), sentences)
    if not train.lengths:
        raise ValueError(f"No sentence in the text of {paths.raw_text!r}")
    ids, lengths = train.arrays()
    if paths.dev_text is not None:
        dev = _Part(folder / "raw-dev.bin", table)
        dev.add(documents(text_files(paths.dev_text), settings.encoding_errors), sentences)
        if not dev.lengths:
            raise ValueError(f"No sentence in the held-out text of {paths.dev_text!r}")
        parts = {"train": (ids, lengths), "dev": dev.arrays()}
    else:
        held_out = _held_out(train.documents, len(lengths), settings.seed)
        words = np.repeat(held_out, lengths)
        parts = {"train": (ids[~words], lengths[~held_out]), "dev": (ids[words], lengths[held_out])}
    counts = np.bincount(parts["train"][0], minlength=len(table))
    # The boundaries and <UNK> come first, as the sampled softmax and bilm-tf's vocabularies want them.
    order = np.concatenate([[0, 1, 2], 3 + np.argsort(-counts[3:], kind="stable")])
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    for name, (part, part_lengths) in parts.items():
        np.save(folder / FILES[name].ids, rank[part])
        np.save(folder / FILES[name].offsets, np.concatenate([[0], np.cumsum(part_lengths)]))
    types = list(table)
    (folder / "types.txt").write_bytes(
        "\n".join(types[i] for i in order).encode("utf8", "surrogatepass")
    )
    np.save(folder / "counts.npy", counts[order])
    for raw in folder.glob("raw-*.bin"):
        raw.unlink()
    statement = {"format": FORMAT, "paths": paths.model_dump(), "prepare": settings.model_dump()}
    (folder / "corpus.json").write_text(json.dumps(statement, indent=2), encoding="utf8")


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
        self.lengths: list[int] = []
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
                    np.asarray(buffer, dtype=np.int32).tofile(file)
                    buffer = []
            np.asarray(buffer, dtype=np.int32).tofile(file)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(words,) int32 provisional ids, mapped; (sentences,) int64 lengths."""
        return np.memmap(self.path, dtype=np.int32, mode="r"), np.asarray(
            self.lengths, dtype=np.int64
        )


def _sentence_splitter(
    settings: Prepare,
) -> Callable[[Iterable[list[str]]], Iterator[list[list[str]]]]:
    """A function from documents (lists of lines) to documents (lists of sentences of words)."""
    if settings.tokenized:
        return lambda texts: ([line.split() for line in lines] for lines in texts)
    import spacy

    from ..bilm.sentences import sentence_starts

    tokenizer: Any = spacy.blank(settings.lang).tokenizer

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
            f"The text has {n_sentences} sentences in {len(found)} documents (a blank line ends one): too few, or"
            f" too few documents, to hold out {_MIN_HELD_OUT_SENTENCES} sentences and train on the rest."
            " Give more text, or held-out text of its own as paths.dev_text"
        )
    return np.repeat(chosen, sizes)
