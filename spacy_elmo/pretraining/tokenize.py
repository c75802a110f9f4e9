"""Tokenization of passages into word indices, the part of the preparation that several processes can share."""

from __future__ import annotations

import collections
import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bilm.spelling import AS_GIVEN, Spelling
from ..digest import Digest
from ..text.passages import Passage, batches, passages
from ..text.sentences import SPACE, starts_of_kinds, word_kinds
from .config import Prepare

_MAX_STRINGS = 100_000
_CHARACTERS_PER_TASK = 1 << 20
_TASKS_PER_PROCESS = 2
_tokenizer: PassageTokenizer  # of a process that tokenizes for another

if TYPE_CHECKING:
    from spacy.language import Language


@dataclass(frozen=True)
class TokenizedPassages:
    """Passages as sentences of words. Passages without a word are left out."""

    types: list[str]
    """The distinct words, in order of first occurrence."""
    words: np.ndarray
    """Index of each word in `types`, (words,) int32."""
    lengths: np.ndarray
    """Number of words of each sentence, (sentences,) int32."""
    passages: np.ndarray
    """Number of sentences of each passage, (passages,) int32."""
    digests: np.ndarray
    """Hash of each passage, (passages,) uint64."""


class PassageTokenizer:
    """Tokenizer and sentence splitter for passages. It splits sentences by the same rule as the component
    `elmo` (`text/sentences.py`).

    Args:
        spelling: rule that changes characters of each token, for example the spelling rule of a biLM.
    """

    def __init__(self, settings: Prepare, spelling: Spelling = AS_GIVEN) -> None:
        self.settings = settings
        self.spelling = spelling
        self._nlp = None if settings.tokenized else _blank(settings)

    def __reduce__(self) -> tuple[type[PassageTokenizer], tuple[Prepare, Spelling]]:
        # Another process creates its own tokenizer.
        return PassageTokenizer, (self.settings, self.spelling)

    def __call__(self, passages: Sequence[Passage]) -> TokenizedPassages:
        """Tokenize passages, and split them into sentences."""
        index = WordIds()
        if self._nlp is None:
            words, sizes = _index_words(
                passages, index, lambda line: map(index.__getitem__, line.split())
            )
        else:
            # In a memory zone, a large vocabulary stops growing, but spaCy's tokenizer is three times slower.
            is_large = len(self._nlp.vocab.strings) >= _MAX_STRINGS
            with self._nlp.memory_zone() if is_large else contextlib.nullcontext():
                words, sizes = _index_words(passages, index, _line_tokenizer(self._nlp, index))
        types = [*index]
        type_kinds = word_kinds(types)
        is_space_type = type_kinds & SPACE > 0
        kinds, is_word = type_kinds[words], ~is_space_type[words]
        if self.settings.tokenized:
            # A line is a sentence, so no word may start another sentence within it. Kind 0 never starts one.
            is_lines = np.array([not passage.is_tokenized for passage in passages], dtype=bool)
            kinds[np.repeat(is_lines, sizes) & is_word] = 0
        starts = starts_of_kinds(kinds)
        lengths = np.bincount((np.cumsum(starts) - 1)[is_word], minlength=int(starts.sum()))
        passage_of_sentence = np.repeat(np.arange(len(passages)), sizes)[starts]
        sentences_per_passage = np.bincount(passage_of_sentence[lengths > 0])
        spelled = WordIds()
        index_of_type = np.zeros(len(types), dtype=np.int32)
        index_of_type[~is_space_type] = [
            spelled[word]
            for word in self.spelling([types[i] for i in np.flatnonzero(~is_space_type)])
        ]
        text = (
            [*spelled],
            index_of_type[words[is_word]],
            lengths[lengths > 0].astype(np.int32),
            sentences_per_passage[sentences_per_passage > 0].astype(np.int32),
        )
        return TokenizedPassages(*text, digests=_digests(*text))


def tokenize_files(
    files: list[Path], tokenizer: PassageTokenizer
) -> Generator[TokenizedPassages, None, None]:
    """Tokenize text files, and yield their sentences in chunks of about a million characters. To stop early,
    close the generator."""
    settings = tokenizer.settings
    n_process = os.cpu_count() or 1 if settings.n_process == -1 else settings.n_process
    # A process tokenizes a task at a time.
    tasks = batches(passages(files), _CHARACTERS_PER_TASK, _size)
    return _in_order(tokenizer, tasks, n_process)


def _size(passage: Passage) -> int:
    return sum(map(len, passage.parts))


def _in_order(
    tokenizer: PassageTokenizer, tasks: Iterable[list[Passage]], n_process: int
) -> Generator[TokenizedPassages, None, None]:
    """Yield `tokenizer(task)` for each task, in order. If `n_process` is not 1, new processes tokenize, each with at
    most one task that runs and one that waits. They end when this process ends, even if it is killed."""
    if n_process == 1:
        yield from map(tokenizer, tasks)
        return
    pool = ProcessPoolExecutor(n_process, initializer=_initialize, initargs=(tokenizer,))
    try:
        remaining = iter(tasks)
        first = itertools.islice(remaining, _TASKS_PER_PROCESS * n_process)
        pending: collections.deque[Future[TokenizedPassages]] = collections.deque(
            pool.submit(_run, task) for task in first
        )
        while pending:
            result = pending.popleft().result()
            pending.extend(pool.submit(_run, task) for task in itertools.islice(remaining, 1))
            yield result
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"One of {n_process} processes died: it ran out of memory, or could not start. Set prepare.n_process to a"
            " smaller number; with 1, no process is started"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _initialize(tokenizer: PassageTokenizer) -> None:
    global _tokenizer
    _tokenizer = tokenizer
    # Ctrl-C reaches every process of the terminal, but only the parent should handle it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _run(task: list[Passage]) -> TokenizedPassages:
    return _tokenizer(task)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


class WordIds(dict[str, int]):
    """Mapping from words to indices. The first lookup of a new word gives it the next index. Words given at
    construction have the first indices."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        super().__init__((word, number) for number, word in enumerate(words))

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def _index_words(
    passages: Sequence[Passage], index: WordIds, tokenize: Callable[[str], Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the word indices of all passages, with a newline after each line and each passage of tokens, and the
    number of indices of each passage."""
    newline = index["\n"]
    words: list[int] = []
    ends = [0]
    for passage in passages:
        if passage.is_tokenized:
            words.extend(map(index.__getitem__, passage.parts))
            words.append(newline)
        else:
            for line in passage.parts:
                words.extend(tokenize(line))
                words.append(newline)
        ends.append(len(words))
    return np.array(words, dtype=np.int32), np.diff(ends)


def _line_tokenizer(nlp: Language, index: WordIds) -> Callable[[str], Any]:
    """Return a function that tokenizes a line and looks up each distinct token in `index` only once."""
    from spacy.attrs import ORTH

    strings, tokenizer = nlp.vocab.strings, nlp.tokenizer

    class IndexByHash(dict[int, int]):
        def __missing__(self, key: int) -> int:
            self[key] = number = index[strings[key]]
            return number

    by_hash = IndexByHash()
    return lambda line: map(by_hash.__getitem__, tokenizer(line).to_array([ORTH]).tolist())


def _digests(
    types: list[str], words: np.ndarray, lengths: np.ndarray, passages: np.ndarray
) -> np.ndarray:
    """Return a 64-bit hash of each passage, (passages,) uint64. The arguments are those of `TokenizedPassages`."""
    texts = iter([types[word] for word in words.tolist()])
    sentences = (" ".join(itertools.islice(texts, length)) + "\n" for length in lengths.tolist())
    digests = [
        Digest("".join(itertools.islice(sentences, size)).encode("utf8")).digest()[:8]
        for size in passages.tolist()
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _blank(settings: Prepare) -> Language:
    import spacy

    config = {} if settings.tokenizer is None else {"nlp": {"tokenizer": settings.tokenizer}}
    try:
        return spacy.blank(settings.lang, config=config)
    except (ImportError, ValueError) as error:  # an unknown language raises an ImportError
        raise ValueError(
            f"spaCy cannot create the tokenizer of prepare.lang = {settings.lang!r}, prepare.tokenizer ="
            f" {settings.tokenizer!r}. Choose another tokenizer, install the packages that it needs, or use tokenized"
            " text with prepare.tokenized = true:\n" + str(error).strip()
        ) from error
