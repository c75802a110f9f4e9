"""Part-of-speech probe, in which a linear classifier predicts tags from the vectors of each layer."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ...text.conllu import FORM, UPOS, XPOS, conllu_sentences
from .layers import LayerReader
from .linear import fit_linear

TagColumn: TypeAlias = Literal["upos", "xpos"]
_COLUMNS = {"upos": UPOS, "xpos": XPOS}
_NO_TAG = "_"
_UNKNOWN = -1


class TaggedText(NamedTuple):
    """Tokenized sentences, and the tags of all their words in one list."""

    sentences: list[list[str]]
    tags: list[str]

    @property
    def words(self) -> list[str]:
        """Words of all sentences, in order."""
        return [word for sentence in self.sentences for word in sentence]


@dataclass(frozen=True)
class TagScores:
    """Accuracies of a part-of-speech probe, between 0 and 1.

    Unless noted otherwise, accuracies are measured on the test text.
    """

    words: int
    """Number of words in the test text."""
    tags: int
    """Number of different tags in the training text."""
    layers: list[float]
    """Accuracy of each layer, starting with the context-free layer 0."""
    dev: list[float]
    """Accuracy of each layer on the development text, which was used to choose the best epoch."""
    most_frequent: float
    """Accuracy of a baseline that assigns to each word the most frequent tag of the word in training. A word
    that does not occur in training gets the most frequent tag of all words."""


def read_tags(file: Path, column: TagColumn) -> TaggedText:
    """Read the words and tags of a CoNLL-U file.

    Args:
        column: "upos" for universal tags, or "xpos" for language-specific tags.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has no words, or a word has no tag. See also `conllu_sentences`.
    """
    rows = list(conllu_sentences(file))
    sentences = [[columns[FORM] for columns in sentence] for sentence in rows]
    tags = [columns[_COLUMNS[column]] for sentence in rows for columns in sentence]
    if not tags:
        raise ValueError(f"{file} contains no words")
    if _NO_TAG in tags:
        word = TaggedText(sentences, tags).words[tags.index(_NO_TAG)]
        raise ValueError(
            f"{file}: {word!r} has no tag in the column {column}. Choose the other column (`--column`)"
        )
    return TaggedText(sentences, tags)


def probe_tags(
    reader: LayerReader,
    train: TaggedText,
    dev: TaggedText,
    test: TaggedText,
    *,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> TagScores:
    """Train and test a linear classifier on the vectors of each layer, as in Peters et al. 2018, section 5.3.

    The biLM runs once. Its layers are stored in temporary files, and memory holds the vectors of one layer at a time.

    Args:
        train: text to train the classifiers on.
        dev: text to choose the best epoch of each classifier.
        test: text to measure the accuracies on. Words with a tag that does not occur in `train` count as errors.
        seed: random seed for the order of the training words.
        progress: function that is called after each layer. Its argument is always 1.
    """
    names = sorted(set(train.tags))
    texts = (train, dev, test)
    gold = [_numbers(text.tags, names) for text in texts]
    scores: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [_write_layers(reader, text, Path(folder) / str(n)) for n, text in enumerate(texts)]
        for layer in range(reader.layers):
            x_train, x_dev, x_test = (np.array(file[layer]) for file in files)
            classifier = fit_linear((x_train, gold[0]), (x_dev, gold[1]), len(names), seed=seed)
            scores.append(
                (classifier.accuracy(x_dev, gold[1]), classifier.accuracy(x_test, gold[2]))
            )
            if progress is not None:
                progress(1)
        del files  # some systems cannot remove a folder while its files are mapped
    dev_scores, test_scores = zip(*scores, strict=True)
    return TagScores(
        words=len(test.tags),
        tags=len(names),
        layers=list(test_scores),
        dev=list(dev_scores),
        most_frequent=_baseline_accuracy(train, test),
    )


def _numbers(tags: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return the index of each tag in `names`, as an int64 array; -1 for an unknown tag."""
    rows = {name: row for row, name in enumerate(names)}
    return np.array([rows.get(tag, _UNKNOWN) for tag in tags], dtype=np.int64)


def _write_layers(reader: LayerReader, text: TaggedText, file: Path) -> np.memmap:
    """Write the layers of a text to a file. Return the memory-mapped file, (layers, words, width) float32."""
    shape = (reader.layers, len(text.tags), reader.width)
    layers = np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
    start = 0
    for vectors in reader(text.sentences):
        end = start + vectors.shape[1]
        layers[:, start:end] = vectors
        start = end
    return layers


def _baseline_accuracy(train: TaggedText, test: TaggedText) -> float:
    """Return the accuracy of the baseline `TagScores.most_frequent`."""
    by_word: dict[str, Counter[str]] = {}
    for word, tag in zip(train.words, train.tags, strict=True):
        by_word.setdefault(word, Counter())[tag] += 1
    ((default, _),) = Counter(train.tags).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    answers = [best.get(word, default) for word in test.words]
    return float(np.mean(np.array(answers) == np.array(test.tags)))
