"""Parts of speech by a linear classifier: how much of them stands in a layer."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ...text.conllu import FORM, UPOS, XPOS, conllu_sentences
from .layers import LayerReader
from .linear import fit_linear

Column: TypeAlias = Literal["upos", "xpos"]
_COLUMNS = {"upos": UPOS, "xpos": XPOS}
_NO_TAG = "_"
_UNKNOWN = -1


class TaggedText(NamedTuple):
    """Sentences of words, and a tag for each word of all sentences."""

    sentences: list[list[str]]
    tags: list[str]

    @property
    def words(self) -> list[str]:
        """Of all sentences."""
        return [word for sentence in self.sentences for word in sentence]


@dataclass(frozen=True)
class TagScores:
    """Accuracies, as shares of 1, on text that was neither trained nor chosen on."""

    words: int
    """To be given a tag."""
    tags: int
    """Different ones in training."""
    layers: list[float]
    """By the vectors of each layer, 0 to L."""
    dev: list[float]
    """Likewise, on the text by which the epoch was chosen."""
    most_frequent: float
    """Of the tag that each word had most often in training; of a word that did not occur, the most frequent tag."""


def read_tags(file: Path, column: Column) -> TaggedText:
    """The words and tags of a CoNLL-U file.

    Args:
        column: "upos", the universal tags, or "xpos", those of the language.

    Raises:
        OSError: the file cannot be read.
        ValueError: as of `conllu_sentences`; or there are no words, or words without tags.
    """
    rows = list(conllu_sentences(file))
    sentences = [[columns[FORM] for columns in sentence] for sentence in rows]
    tags = [columns[_COLUMNS[column]] for sentence in rows for columns in sentence]
    if not tags:
        raise ValueError(f"{file}: there are no words in it")
    if _NO_TAG in tags:
        word = TaggedText(sentences, tags).words[tags.index(_NO_TAG)]
        raise ValueError(
            f"{file}: {word!r} has no tag in the column {column}; choose the other one"
        )
    return TaggedText(sentences, tags)


def probe_tags(
    read: LayerReader, train: TaggedText, dev: TaggedText, test: TaggedText, *, seed: int = 0
) -> TagScores:
    """Train a linear classifier on the vectors of each layer, as in Peters et al. 2018, section 5.3, and test it.

    The biLM is read once, and its layers wait on disk: memory holds one layer of the words at a time.

    Args:
        train: from which the classifiers learn.
        dev: which chooses among their epochs.
        test: on which they are compared. A tag that does not occur in `train` cannot be found, and counts as a mistake.
        seed: of the order in which words are learnt.
    """
    names = sorted(set(train.tags))
    texts = (train, dev, test)
    gold = [_numbers(text.tags, names) for text in texts]
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [_write_layers(read, text, Path(folder) / str(n)) for n, text in enumerate(texts)]
        for layer in range(read.layers):
            x_train, x_dev, x_test = (np.array(file[layer]) for file in files)
            classifier = fit_linear((x_train, gold[0]), (x_dev, gold[1]), len(names), seed=seed)
            found.append(
                (classifier.accuracy(x_dev, gold[1]), classifier.accuracy(x_test, gold[2]))
            )
        del files  # before the folder, which cannot be removed while it is mapped on some systems
    dev_scores, test_scores = zip(*found, strict=True)
    return TagScores(
        words=len(test.tags),
        tags=len(names),
        layers=list(test_scores),
        dev=list(dev_scores),
        most_frequent=_most_frequent(train, test),
    )


def _numbers(tags: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """(n,) int64."""
    rows = {name: row for row, name in enumerate(names)}
    return np.array([rows.get(tag, _UNKNOWN) for tag in tags], dtype=np.int64)


def _write_layers(read: LayerReader, text: TaggedText, file: Path) -> np.memmap:
    """(layers, n_words, width) float32, mapped from the file."""
    shape = (read.layers, len(text.tags), read.width)
    layers = np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
    start = 0
    for vectors in read(text.sentences):
        end = start + vectors.shape[1]
        layers[:, start:end] = vectors
        start = end
    return layers


def _most_frequent(train: TaggedText, test: TaggedText) -> float:
    """Accuracy."""
    by_word: dict[str, Counter[str]] = {}
    for word, tag in zip(train.words, train.tags, strict=True):
        by_word.setdefault(word, Counter())[tag] += 1
    ((default, _),) = Counter(train.tags).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    answers = [best.get(word, default) for word in test.words]
    return float(np.mean(np.array(answers) == np.array(test.tags)))
