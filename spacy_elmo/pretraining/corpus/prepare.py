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

from ...bilm.words.char_ids import BOS, EOS, UNK
from ...bilm.words.spelling import AS_GIVEN, Spelling
from ...digest import Digest, with_digests
from ...files import atomic_folder, remove_partial
from ...run_lock import lock
from ...text.documents import LINES_PER_DOCUMENT
from ..config import Paths, Prepare
from .prepared import COUNTS, DATA_FILES, DESCRIPTION, FILES, FORMAT, TYPES, Corpus
from .tokenize import DocumentTokenizer, WordIndex, tokenize_files

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
    vocabulary of size n. `spelling` is applied to all words, so it also applies to the words of the softmax.
    The result depends only on the text and the settings, not on the number of processes.

    The distinct words are held in memory. Each sentence and each document needs about 40 bytes; with `dedup`,
    it needs twice as much for a short time. Each process needs memory for its tokenizer and for two batches
    of a million characters. In total, 22 million words of English need 0.6 GB with two processes. Each line,
    JSON record or `.spacy` file must fit into memory, but the whole text need not.

    Args:
        paths: paths of the raw text and of the held-out text. Without held-out text, a part of the raw text
            is held out.
        settings: the config section `[prepare]`.
        out: folder of the corpus.
        spelling: the spelling rule of the biLM that will be trained. It changes characters of the words.
        force: replace the corpus in `out` when the new one is complete.

    Raises:
        BlockingIOError: another run is preparing this corpus.
        FileExistsError: `out` exists and `force` is false, or `out` exists and is not a prepared corpus.
        FileNotFoundError: there is no text.
        OSError: `out` cannot be written (for example, the disk is full), or a process died.
        ValueError: the text has no sentence; the text is too small to hold sentences out; the training text
            contains a held-out file, and `dedup` does not remove it; `dedup` removes all training text; a
            file or a line cannot be read; or the language has no tokenizer.
    """
    out = Path(out)
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists; to replace it, set force (`--force`)")
    if out.exists() and not (out / DESCRIPTION).is_file():
        raise FileExistsError(
            f"{out} is no prepared corpus, so it is not replaced; choose another folder"
        )
    # Check everything that may contain a typo, before hours of tokenizing.
    texts = paths.text_files()
    if paths.dev_text is not None and settings.dedup == "none":
        _check_disjoint(paths, texts)
    tokenizer = DocumentTokenizer(settings, spelling)
    out.parent.mkdir(parents=True, exist_ok=True)
    with lock(out):
        remove_partial(out.parent, out.name)
        with atomic_folder(out) as folder:
            _write_corpus(folder, paths, texts, tokenizer)
    # The digests need no check, because they were computed from the written files.
    return Corpus.open(out, verify=False)


def _check_disjoint(paths: Paths, texts: dict[str, list[Path]]) -> None:
    """Check that no file is in the training text and in the held-out text."""
    raw_text, dev_text = str(paths.raw_text), str(paths.dev_text)
    held_out = {file.resolve() for file in texts[dev_text]}
    if both := [str(file) for file in texts[raw_text] if file.resolve() in held_out]:
        raise ValueError(
            f"The training text paths.raw_text = {raw_text!r} contains held-out files of paths.dev_text = {dev_text!r}:"
            f" {', '.join(both)}. Move these files to another folder, or remove their text from the training text"
            " with prepare.dedup = 'documents'"
        )


def _write_corpus(
    folder: Path, paths: Paths, texts: dict[str, list[Path]], tokenizer: DocumentTokenizer
) -> None:
    """Tokenize text, and write the files of a corpus to `folder`. `texts` is {path in `paths`: text
    files}."""
    settings, raw_text, dev_text = tokenizer.settings, paths.raw_text, paths.dev_text
    assert raw_text is not None, "checked by Paths.text_files"
    index = WordIndex([BOS, EOS, UNK])
    train = _IndexedText(folder / "raw-train.bin", index)
    if not train.fill(texts[raw_text], tokenizer):
        raise ValueError(f"The text of paths.raw_text = {raw_text!r} has no sentence")
    dev = None
    if dev_text is not None:
        dev = _IndexedText(folder / "raw-dev.bin", index)
        if not dev.fill(texts[dev_text], tokenizer):
            raise ValueError(f"The text of paths.dev_text = {dev_text!r} has no sentence")
    is_new = _first_occurrences(train, dev, settings.dedup)
    if not is_new.any():
        raise ValueError(
            f"No training text is left: all of {raw_text!r} is also in {dev_text!r}, and prepare.dedup ="
            f" {settings.dedup!r} drops it. Choose other held-out text, or set prepare.dedup = 'none'"
        )
    parts = _split(train, dev, is_new, settings.seed)
    _write(parts, [*index], folder)
    for raw in folder.glob("raw-*.bin"):
        raw.unlink()
    lengths = np.asarray(train.words_per_sentence)
    description = {
        "format": FORMAT,
        "paths": {"raw_text": raw_text, "dev_text": dev_text},
        "prepare": settings.model_dump(exclude={"n_process"}),
        "spelling": dataclasses.asdict(tokenizer.spelling),
        "dropped": {"sentences": int((~is_new).sum()), "words": int(lengths[~is_new].sum())},
    }
    content = with_digests(description, folder / DESCRIPTION, DATA_FILES)
    (folder / DESCRIPTION).write_text(json.dumps(content, indent=2), encoding="utf8")


def _write(parts: dict[str, _Selection], types: list[str], folder: Path) -> None:
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


class _IndexedText:
    """A tokenized text. The word ids are in a file. The lengths and hashes of the sentences and documents are
    in memory."""

    def __init__(self, path: Path, index: WordIndex) -> None:
        self.path = path
        self.index = index
        self.words_per_sentence = array.array("i")
        """Number of words of each sentence, (sentences,)."""
        self.sentences_per_document = array.array("i")
        """Number of sentences of each document, (documents,)."""
        self.document_digests = array.array("Q")
        self.sentence_digests = array.array("Q")

    def fill(self, files: list[Path], tokenizer: DocumentTokenizer) -> bool:
        """Tokenize files, and add the words to this text. Return True if the text now has a sentence."""
        chunks = tokenize_files(files, tokenizer)
        with contextlib.closing(chunks), self.path.open("wb") as file:
            for chunk in chunks:
                ids = np.array([self.index[word] for word in chunk.types], dtype=np.int32)
                file.write(ids[chunk.words].data)
                self.words_per_sentence.frombytes(chunk.lengths.tobytes())
                self.sentences_per_document.frombytes(chunk.documents.tobytes())
                self.document_digests.frombytes(chunk.document_digests.tobytes())
                self.sentence_digests.frombytes(chunk.sentence_digests.tobytes())
        return len(self.words_per_sentence) > 0


class _Selection:
    """Some of the sentences of a tokenized text.

    Args:
        selected: (sentences,) bool, true for these sentences.
    """

    def __init__(self, text: _IndexedText, selected: np.ndarray) -> None:
        self._path = text.path
        self._lengths = np.asarray(text.words_per_sentence, dtype=np.int64)
        self._selected = selected
        self.offsets = np.concatenate([[0], np.cumsum(self._lengths[selected])])

    def ids(self) -> Iterator[np.ndarray]:
        """Yield the word ids of the selected sentences, in chunks that fit into memory. The ids number the
        words by first occurrence, not yet by count."""
        with self._path.open("rb") as file:
            for first in range(0, len(self._lengths), _SENTENCES_PER_CHUNK):
                rows = slice(first, first + _SENTENCES_PER_CHUNK)
                lengths = self._lengths[rows]
                ids = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield ids[np.repeat(self._selected[rows], lengths)]


def _split(
    train: _IndexedText, dev: _IndexedText | None, is_new: np.ndarray, seed: int
) -> dict[str, _Selection]:
    """Return the training part and the held-out part of the corpus. If `dev` is None, hold out some documents
    of `train`. `is_new` is true for each sentence of `train` that `dedup` keeps."""
    if dev is not None:
        everything = np.ones(len(dev.words_per_sentence), dtype=bool)
        return {"train": _Selection(train, is_new), "dev": _Selection(dev, everything)}
    held_out = _held_out(train, is_new, seed)
    return {
        "train": _Selection(train, is_new & ~held_out),
        "dev": _Selection(train, is_new & held_out),
    }


def _first_occurrences(train: _IndexedText, dev: _IndexedText | None, dedup: str) -> np.ndarray:
    """Return True for each training sentence that `dedup` keeps, (sentences,) bool.

    `dedup` removes a sentence that occurs earlier in the training text, or that occurs in the separate
    held-out text. With `dedup` = "documents", whole documents are compared instead of sentences.
    """
    if dedup == "none":
        return np.ones(len(train.words_per_sentence), dtype=bool)
    level = "document_digests" if dedup == "documents" else "sentence_digests"
    before = array.array("Q") if dev is None else getattr(dev, level)
    digests = np.concatenate([np.asarray(before), np.asarray(getattr(train, level))])
    is_first = np.zeros(len(digests), dtype=bool)
    is_first[np.unique(digests, return_index=True)[1]] = True
    is_first = is_first[len(before) :]
    return np.repeat(is_first, train.sentences_per_document) if dedup == "documents" else is_first


def _held_out(text: _IndexedText, is_new: np.ndarray, seed: int) -> np.ndarray:
    """Return True for each sentence of a held-out document, (sentences,) bool.

    Documents are held out in the order of a hash with the seed `seed`, until there are enough documents
    (`_HELD_OUT_SHARE`) and enough sentences (`_MIN_HELD_OUT_SENTENCES`).

    Args:
        is_new: (sentences,) bool, true for the sentences that `dedup` keeps. Other sentences do not count.
    """
    document_of_sentence = np.repeat(
        np.arange(len(text.sentences_per_document)), text.sentences_per_document
    )
    sizes = np.bincount(document_of_sentence[is_new], minlength=len(text.sentences_per_document))
    salt = seed.to_bytes(16, "little")
    keys = [
        Digest(salt + digest.to_bytes(8, "little")).digest() for digest in text.document_digests
    ]
    candidates = np.flatnonzero(sizes)
    min_documents = _HELD_OUT_SHARE * len(candidates)
    is_held_out = np.zeros(len(sizes), dtype=bool)
    sentences = 0
    for number in sorted(candidates.tolist(), key=keys.__getitem__):
        if sentences >= _MIN_HELD_OUT_SENTENCES and is_held_out.sum() >= min_documents:
            break
        is_held_out[number] = True
        sentences += sizes[number]
    if sentences < _MIN_HELD_OUT_SENTENCES or sentences > is_new.sum() // 2:
        raise ValueError(
            f"The text has {is_new.sum()} sentences in {len(candidates)} documents, too few to hold out"
            f" {_MIN_HELD_OUT_SENTENCES} sentences in whole documents and train on the rest (in plain text a document"
            f" ends at a blank line or after {LINES_PER_DOCUMENT} lines). Use more text, or set paths.dev_text to"
            " separate held-out text"
        )
    return is_held_out[document_of_sentence]
