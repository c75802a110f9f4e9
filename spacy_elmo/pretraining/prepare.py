"""Preparation of raw text for training: tokenization, numbering of the distinct words, and files of word
ids."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..bilm.spelling import AS_GIVEN, BOS, EOS, UNK, Spelling
from ..digest import Digest
from ..files import atomic_folder, lock, remove_partial
from ..text.passages import LINES_PER_PASSAGE
from .config import Paths, Prepare
from .corpus import COUNTS, DESCRIPTION, FILES, FORMAT, TYPES, Corpus, digests
from .tokenize import PassageTokenizer, WordIds, tokenize_files

_MIN_HELD_OUT_SENTENCES = 100
_HELD_OUT_SHARE = 0.01
_SENTENCES_PER_CHUNK = 1 << 16


def prepare(
    paths: Paths,
    settings: Prepare,
    out: str | Path,
    spelling: Spelling = AS_GIVEN,
    *,
    force: bool = False,
) -> Corpus:
    """Tokenize text and write a prepared corpus. The folder is written atomically.

    Types (distinct words) are numbered by decreasing count in the training part, so the first n types are the
    vocabulary of size n. The result does not depend on the number of processes. Memory holds the
    distinct words and about 40 bytes for each document: 0.6 GB for 22 million words of English.

    Args:
        paths: paths of the raw text and of the held-out text. Without held-out text, a part of the raw text is held
            out.
        settings: the config section `[prepare]`.
        spelling: the spelling rule of the biLM that will be trained. It changes characters of the words.
        force: replace the corpus in `out` when the new one is complete.
    """
    out = Path(out)
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists; to replace it, set force (`--force`)")
    if out.exists() and not (out / DESCRIPTION).is_file():
        raise FileExistsError(
            f"{out} is not a prepared corpus, so it is not replaced; choose another folder"
        )
    # Check everything that may contain a typo, before hours of tokenizing.
    texts = paths.text_files()
    if paths.dev_text is not None:
        _check_disjoint(paths, texts)
    tokenizer = PassageTokenizer(settings, spelling)
    out.parent.mkdir(parents=True, exist_ok=True)
    with lock(out):
        remove_partial(out.parent, out.name)
        with atomic_folder(out) as folder:
            _write_corpus(folder, paths, texts, tokenizer)
    # The digests need no check, because they were computed from the written files.
    return Corpus.open(out, verify=False)


def _check_disjoint(paths: Paths, texts: dict[str, list[Path]]) -> None:
    raw_text, dev_text = str(paths.raw_text), str(paths.dev_text)
    held_out = {file.resolve() for file in texts[dev_text]}
    if both := [str(file) for file in texts[raw_text] if file.resolve() in held_out]:
        raise ValueError(
            f"The training text paths.raw_text = {raw_text!r} contains held-out files of paths.dev_text = {dev_text!r}:"
            f" {', '.join(both)}. Move these files to another folder"
        )


def _write_corpus(
    folder: Path, paths: Paths, texts: dict[str, list[Path]], tokenizer: PassageTokenizer
) -> None:
    """Tokenize text, and write the files of a corpus to `folder`. `texts` is {path in `paths`: text
    files}."""
    index = WordIds([BOS, EOS, UNK])
    tokenized = []
    for name, source in (("raw_text", paths.raw_text), ("dev_text", paths.dev_text)):
        if source is not None:
            text = _IndexedText(folder / f"{name}.bin", texts[source], tokenizer, index)
            if not len(text.lengths):
                raise ValueError(f"The text of paths.{name} = {source!r} has no sentence")
            tokenized.append(text)
    train, dev = tokenized[0], tokenized[-1]
    if dev is train:
        held_out = _held_out(train, tokenizer.settings.seed)
        parts = {"train": _Part(train, ~held_out), "dev": _Part(train, held_out)}
    else:
        everything = (np.ones(len(text.lengths), dtype=bool) for text in tokenized)
        parts = dict(zip(FILES, map(_Part, tokenized, everything), strict=True))
    _write_parts(parts, [*index], folder)
    for text in tokenized:
        text.path.unlink()
    description = {
        "format": FORMAT,
        "paths": {"raw_text": paths.raw_text, "dev_text": paths.dev_text},
        "prepare": tokenizer.settings.model_dump(exclude={"n_process"}),
        "spelling": dataclasses.asdict(tokenizer.spelling),
    }
    content = {**description, "digests": digests(description, folder)}
    (folder / DESCRIPTION).write_text(json.dumps(content, indent=2), encoding="utf8")


class _IndexedText:
    """A tokenized text, whose word ids are in a file."""

    def __init__(
        self, path: Path, files: list[Path], tokenizer: PassageTokenizer, index: WordIds
    ) -> None:
        self.path = path
        lengths, sizes, digests = array.array("i"), array.array("i"), array.array("Q")
        chunks = tokenize_files(files, tokenizer)
        with contextlib.closing(chunks), path.open("wb") as file:
            for chunk in chunks:
                ids = np.array([index[word] for word in chunk.types], dtype=np.int32)
                file.write(ids[chunk.words].data)
                lengths.frombytes(chunk.lengths.tobytes())
                sizes.frombytes(chunk.passages.tobytes())
                digests.frombytes(chunk.digests.tobytes())
        self.lengths = np.asarray(lengths, dtype=np.int64)
        """Number of words of each sentence, (sentences,)."""
        self.passages = np.asarray(sizes)
        """Number of sentences of each passage, (passages,)."""
        self.digests = digests
        """Hash of each passage."""


class _Part:
    """The training part or the held-out part of a corpus: the sentences of `text` for which `selected` is true."""

    def __init__(self, text: _IndexedText, selected: np.ndarray) -> None:
        self._text, self._selected = text, selected
        self.offsets = np.concatenate([[0], np.cumsum(text.lengths[selected])])

    def ids(self) -> Iterator[np.ndarray]:
        """Yield the word ids, which number the words by first occurrence, in chunks that fit into memory."""
        with self._text.path.open("rb") as file:
            for first in range(0, len(self._selected), _SENTENCES_PER_CHUNK):
                rows = slice(first, first + _SENTENCES_PER_CHUNK)
                lengths = self._text.lengths[rows]
                ids = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield ids[np.repeat(self._selected[rows], lengths)]


def _write_parts(parts: dict[str, _Part], types: list[str], folder: Path) -> None:
    counts = np.zeros(len(types), dtype=np.int64)
    first, position = np.full(len(types), np.iinfo(np.int64).max), 0
    for ids in parts["train"].ids():
        words, positions, found = np.unique(ids, return_index=True, return_counts=True)
        counts[words] += found
        first[words] = np.minimum(first[words], position + positions)
        position += len(ids)
    # The boundaries and <UNK> come first, as the sampled softmax and bilm-tf's vocabularies require. The order of
    # equally frequent words depends only on the training text, so that no vocabulary prefers held-out words.
    order = np.concatenate([[0, 1, 2], 3 + np.lexsort((first[3:], -counts[3:]))])
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    for name, part in parts.items():
        np.save(folder / FILES[name].offsets, part.offsets)
        with (folder / FILES[name].ids).open("wb") as file:
            # Not memory-mapped: on a full disk a write raises an error, but access to a mapped page kills the process.
            header = {"descr": "<i4", "fortran_order": False, "shape": (int(part.offsets[-1]),)}
            np.lib.format.write_array_header_1_0(file, header)
            for ids in part.ids():
                file.write(rank[ids].astype("<i4", copy=False).data)
    (folder / TYPES).write_bytes("\n".join(types[i] for i in order).encode("utf8"))
    np.save(folder / COUNTS, counts[order])


def _held_out(text: _IndexedText, seed: int) -> np.ndarray:
    """Return True for each sentence of a held-out document, (sentences,). A hash with the seed orders the documents,
    and the first are held out until there are enough documents and sentences."""
    salt = seed.to_bytes(16, "little")
    keys = [Digest(salt + digest.to_bytes(8, "little")).digest() for digest in text.digests]
    is_held_out = np.zeros(len(keys), dtype=bool)
    sentences = 0
    for number in sorted(range(len(keys)), key=keys.__getitem__):
        enough = is_held_out.sum() >= _HELD_OUT_SHARE * len(keys)
        if enough and sentences >= _MIN_HELD_OUT_SENTENCES:
            break
        is_held_out[number] = True
        sentences += text.passages[number]
    if sentences < _MIN_HELD_OUT_SENTENCES or sentences > len(text.lengths) // 2:
        raise ValueError(
            f"The text has {len(text.lengths)} sentences in {len(keys)} documents, too few to hold out"
            f" {_MIN_HELD_OUT_SENTENCES} sentences in whole documents and train on the rest (in plain text a document"
            f" ends at a blank line or after {LINES_PER_PASSAGE} lines). Use more text, or set paths.dev_text to"
            " separate held-out text"
        )
    return np.repeat(is_held_out, text.passages)
