"""Text -> prepared corpus: a table of types with counts, and memory-mapped arrays of ids."""

from __future__ import annotations

import array
import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import numpy as np

from ...bilm.words.char_ids import BOS, EOS, UNK
from ...text.documents import LINES_PER_DOCUMENT, Document, documents
from ...text.files import text_files
from ..config import Paths, Prepare
from .prepared import FILES, FORMAT, Corpus
from .processes import in_order
from .tokenize import DocumentTokenizer, Numbers, Piece

_MIN_HELD_OUT_SENTENCES = 100
_HELD_OUT_SHARE = 0.01
_CHARACTERS_PER_PIECE = 1 << 20
_SENTENCES_PER_CHUNK = 1 << 16


def prepare(paths: Paths, settings: Prepare, out: str | Path) -> Corpus:
    """Tokenize text and write a prepared corpus. The folder appears whole or not at all.

    Types are numbered by falling count in the training part, so that a vocabulary of any size is the head
    of the table. What is written follows from the text and the settings alone, not from the number of processes.

    Memory holds the types, some 40 bytes per sentence and per document (twice as much for a moment with `dedup`), and
    per process its tokenizer and two pieces of a million characters: 0.6 GB in all for 22 million words of English
    and two processes. A single line, JSON record or `.spacy` file has to fit as well. The text is never held whole.

    Raises:
        FileExistsError: `out` exists.
        FileNotFoundError: no text.
        OSError: naming `out`, it cannot be written (a full disk); a process died.
        ValueError: the text holds no sentence, or not enough to hold some out; a file or a line that cannot be read;
            a language without a tokenizer.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; delete it, or choose another folder")
    if paths.raw_text is None:
        raise ValueError("paths.raw_text is needed: a file, a directory or a glob pattern")
    # Whatever a typing mistake can spoil comes first, before hours of tokenizing.
    files = text_files(paths.raw_text)
    dev_files = None if paths.dev_text is None else text_files(paths.dev_text)
    cutter = DocumentTokenizer(settings)
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed here
    partial.mkdir(parents=True)
    try:
        table = Numbers([BOS, EOS, UNK])
        train = _Part(partial / "raw-train.bin", table)
        with contextlib.closing(cut_files(files, cutter, settings)) as pieces:
            train.add(pieces)
        if not train.lengths:
            raise ValueError(f"No sentence in the text of {paths.raw_text!r}")
        dev = None
        if dev_files is not None:
            dev = _Part(partial / "raw-dev.bin", table)
            with contextlib.closing(cut_files(dev_files, cutter, settings)) as pieces:
                dev.add(pieces)
            if not dev.lengths:
                raise ValueError(f"No sentence in the held-out text of {paths.dev_text!r}")
        fresh = _fresh(train, dev, settings.dedup)
        if not fresh.any():
            raise ValueError(
                f"All of {paths.raw_text!r} stands in {paths.dev_text!r} too, and prepare.dedup ="
                f" {settings.dedup!r} leaves nothing to train on"
            )
        if dev is not None:
            parts = {"train": _Choice(train, fresh), "dev": _Choice.all(dev)}
        else:
            held_out = _held_out(train, fresh, settings.seed)
            parts = {
                "train": _Choice(train, fresh & ~held_out),
                "dev": _Choice(train, fresh & held_out),
            }
        _write(parts, [*table], partial)
        for raw in partial.glob("raw-*.bin"):
            raw.unlink()
        lengths = np.asarray(train.lengths)
        statement = {
            "format": FORMAT,
            "paths": paths.model_dump(include={"raw_text", "dev_text"}),
            "prepare": settings.model_dump(exclude={"n_process"}),
            "dropped": {"sentences": int((~fresh).sum()), "words": int(lengths[~fresh].sum())},
        }
        (partial / "corpus.json").write_text(json.dumps(statement, indent=2), encoding="utf8")
        partial.rename(out)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(out)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(out)


def cut_files(
    files: list[Path], cutter: DocumentTokenizer, settings: Prepare
) -> Generator[Piece, None, None]:
    """The sentences of text files, in pieces of about a million characters. Close it when you stop early."""
    n_process = os.cpu_count() or 1 if settings.n_process == -1 else settings.n_process
    return in_order(cutter, _tasks(documents(files, settings.encoding_errors)), n_process)


def _tasks(found: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents, in lists worth handing to another process."""
    task: list[Document] = []
    characters = 0
    for document in found:
        task.append(document)
        characters += sum(map(len, document.text))
        if characters >= _CHARACTERS_PER_PIECE:
            yield task
            task, characters = [], 0
    if task:
        yield task


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
    (folder / "types.txt").write_bytes("\n".join(types[i] for i in order).encode("utf8"))
    np.save(folder / "counts.npy", counts[order])


class _Part:
    """One text: the ids of its words on disk, a few numbers per sentence and document in memory."""

    def __init__(self, path: Path, table: Numbers) -> None:
        self.path = path
        self.table = table
        self.lengths = array.array("i")
        """(sentences,) words of each."""
        self.sizes = array.array("i")
        """(documents,) sentences of each."""
        self.document_digests = array.array("Q")
        self.sentence_digests = array.array("Q")

    def add(self, pieces: Iterable[Piece]) -> None:
        with self.path.open("wb") as file:
            for piece in pieces:
                numbers = np.array([self.table[word] for word in piece.types], dtype=np.int32)
                file.write(numbers[piece.words].data)
                self.lengths.frombytes(piece.lengths.tobytes())
                self.sizes.frombytes(piece.documents.tobytes())
                self.document_digests.frombytes(piece.document_digests.tobytes())
                self.sentence_digests.frombytes(piece.sentence_digests.tobytes())


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


def _fresh(train: _Part, dev: _Part | None, dedup: str) -> np.ndarray:
    """(sentences,) bool: the training sentences that stand neither earlier in the text nor in held-out text of its
    own, or whose documents do not."""
    if dedup == "none":
        return np.ones(len(train.lengths), dtype=bool)
    level = "document_digests" if dedup == "documents" else "sentence_digests"
    before = array.array("Q") if dev is None else getattr(dev, level)
    digests = np.concatenate([np.asarray(before), np.asarray(getattr(train, level))])
    fresh = np.zeros(len(digests), dtype=bool)
    fresh[np.unique(digests, return_index=True)[1]] = True
    fresh = fresh[len(before) :]
    return np.repeat(fresh, train.sizes) if dedup == "documents" else fresh


def _held_out(part: _Part, fresh: np.ndarray, seed: int) -> np.ndarray:
    """(sentences,) bool: the documents of the smallest seeded hashes, until both minima are met.

    Args:
        fresh: (sentences,) bool, those that count.
    """
    owners = np.repeat(np.arange(len(part.sizes)), part.sizes)
    sizes = np.bincount(owners[fresh], minlength=len(part.sizes))
    salt = seed.to_bytes(16, "little")
    keys = [
        hashlib.blake2b(digest.to_bytes(8, "little"), salt=salt).digest()
        for digest in part.document_digests
    ]
    remaining = np.flatnonzero(sizes)
    chosen = np.zeros(len(sizes), dtype=bool)
    sentences = 0
    for number in sorted(remaining.tolist(), key=keys.__getitem__):
        if sentences >= _MIN_HELD_OUT_SENTENCES and chosen.sum() >= _HELD_OUT_SHARE * len(
            remaining
        ):
            break
        chosen[number] = True
        sentences += sizes[number]
    if sentences < _MIN_HELD_OUT_SENTENCES or sentences > fresh.sum() // 2:
        raise ValueError(
            f"The text has {fresh.sum()} sentences in {len(remaining)} documents (in plain text a blank line ends one,"
            f" and {LINES_PER_DOCUMENT} lines do): too few, or too few documents, to hold out"
            f" {_MIN_HELD_OUT_SENTENCES} sentences and train on the rest."
            " Give more text, or held-out text of its own as paths.dev_text"
        )
    return chosen[owners]
