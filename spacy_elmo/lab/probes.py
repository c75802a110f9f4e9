"""Probes: how well the vectors of each layer predict word senses and parts of speech (Peters et al. 2018, section
5.3)."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spacy.language import Language
from spacy.tokens import Doc

from .conllu import FORM, UPOS, read_conllu
from .pipelines import elmo_and_later, find_elmo
from .senses import SenseInstance, SenseSentence, entry_of

_SENTENCES = 512
"""Number of sentences to process at once: many, so that batches contain sentences of similar lengths."""
_ITERATIONS = 100
"""Iterations of L-BFGS. Accuracy no longer changes much, although the loss has not converged."""


def sentence_layers(
    nlp: Language,
    sentences: Iterable[Sequence[str]],
    progress: Callable[[int], object] = lambda n: None,
) -> Iterator[np.ndarray]:
    """Yield the biLM layers of each sentence of n words, (layers, n, width). Components after elmo do not run.
    `progress` is called with the number of sentences since the previous call."""
    model = find_elmo(nlp)[1].model
    stream = iter(sentences)
    while group := list(itertools.islice(stream, _SENTENCES)):
        docs = (Doc(nlp.vocab, words=list(words)) for words in group)
        layers = model.predict(list(nlp.pipe(docs, disable=elmo_and_later(nlp))))
        yield from map(model.ops.to_numpy, layers)
        progress(len(group))


class Answer(NamedTuple):
    """Senses that a `SenseProbe` predicts for one annotated word."""

    gold: tuple[str, ...]
    """Correct senses."""
    predicted: list[str | None]
    """Nearest sense in each layer, most frequent sense in training, WordNet's first sense. None: no prediction."""
    choices: int
    """Number of senses that the lexicon entry (lemma and part of speech) of the word has in training."""


@dataclass(frozen=True)
class SenseScores:
    """F1 scores of a `SenseProbe` on a text, between 0 and 1."""

    instances: int
    """Number of annotated words."""
    seen: int
    """Number of annotated words whose lexicon entry occurs in training."""
    ambiguous: int
    """Number of annotated words whose lexicon entry has several senses in training. Only for these words can the
    predictions of the layers differ."""
    layers: list[float]
    """F1 of each layer, starting with the context-free layer 0."""
    most_frequent: float
    """F1 of a baseline that predicts the most frequent sense in training."""
    first: float
    """F1 of a baseline that predicts WordNet's first sense; 0 if first senses were not given."""

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> SenseScores:
        """Score the answers of one or more texts."""
        *layers, most_frequent, first = (
            _f1([answer.gold for answer in answers], predicted)
            for predicted in zip(*(answer.predicted for answer in answers), strict=True)
        )
        return cls(
            instances=len(answers),
            seen=sum(answer.choices > 0 for answer in answers),
            ambiguous=sum(answer.choices > 1 for answer in answers),
            layers=layers,
            most_frequent=most_frequent,
            first=first,
        )


def _f1(gold: Sequence[tuple[str, ...]], predicted: Sequence[str | None]) -> float:
    # 2PR / (P + R), with P = correct / predicted and R = correct / n.
    correct = sum(sense in senses for sense, senses in zip(predicted, gold, strict=True))
    return 2 * correct / (len(gold) + sum(sense is not None for sense in predicted))


class SenseProbe:
    """Prediction of word senses by the nearest centroid in each layer (Melamud et al. 2016).

    In each layer, the centroid of a sense is the mean vector of its occurrences in training. A word gets the sense
    of its lexicon entry (lemma and part of speech) whose centroid has the highest cosine. If an occurrence consists
    of several words, its vector is the mean of the vectors of these words. If the lexicon entry does not occur in
    training, the word gets WordNet's first sense, or no sense if that is not given.

    Args:
        first_senses: WordNet's first sense of each lexicon entry, from `read_first_senses`.
        progress: see `sentence_layers`.
    """

    def __init__(
        self,
        nlp: Language,
        sentences: Iterable[SenseSentence],
        first_senses: Mapping[str, str] | None = None,
        progress: Callable[[int], object] = lambda n: None,
    ) -> None:
        self._nlp, self._progress = nlp, progress
        self._first_senses = first_senses or {}
        counts: Counter[str] = Counter()
        # Sums suffice: the cosine depends only on the direction, and the sum has the direction of the mean.
        sums: dict[str, np.ndarray] = {}
        for instance, vectors in self._occurrences(sentences):
            sense = instance.senses[0]
            counts[sense] += 1
            sums[sense] = sums[sense] + vectors if sense in sums else vectors
        if not counts:
            raise ValueError(
                "No word of the training text has a sense. Use text with annotated senses"
            )
        self._senses: dict[str, list[str]] = {}
        for sense, _ in counts.most_common():  # equally frequent senses are in order of occurrence
            self._senses.setdefault(entry_of(sense), []).append(sense)
        self._centroids = {
            entry: np.stack([sums.pop(sense) for sense in senses], axis=1)
            for entry, senses in self._senses.items()
        }

    def answer(self, sentences: Iterable[SenseSentence]) -> list[Answer]:
        """Predict the sense of each annotated word. Its lexicon entry is taken from the annotation, as usual in this
        task."""
        answers = []
        for instance, vectors in self._occurrences(sentences):
            entry = entry_of(instance.senses[0])
            first = self._first_senses.get(entry)
            senses = self._senses.get(entry, [])
            predicted: list[str | None] = [first] * (len(vectors) + 2)
            if senses:
                nearest = [
                    senses[cosine_similarity(vector[None], centroids).argmax()]
                    for vector, centroids in zip(vectors, self._centroids[entry], strict=True)
                ]
                predicted = [*nearest, senses[0], first]
            answers.append(Answer(instance.senses, predicted, len(senses)))
        return answers

    def _occurrences(
        self, sentences: Iterable[SenseSentence]
    ) -> Iterator[tuple[SenseInstance, np.ndarray]]:
        """Yield each annotated word, and its vector in each layer, (layers, width)."""
        sentences, inputs = itertools.tee(sentences)
        layers = sentence_layers(self._nlp, (s.words for s in inputs), self._progress)
        for sentence, vectors in zip(sentences, layers, strict=True):
            for instance in sentence.instances:
                yield instance, vectors[:, instance.start : instance.end].mean(1, dtype=np.float32)


class TaggedText(NamedTuple):
    """Tokenized sentences, and the tags of all their words in one list."""

    sentences: list[list[str]]
    tags: list[str]


@dataclass(frozen=True)
class TagScores:
    """Accuracies of `probe_tags` on the test text, between 0 and 1."""

    words: int
    """Number of words in the test text."""
    tags: int
    """Number of different tags in the training text."""
    layers: list[float]
    """Accuracy of each layer, starting with the context-free layer 0."""
    most_frequent: float
    """Accuracy of a baseline that assigns to each word its most frequent tag in training. A word that does not occur
    in training gets the most frequent tag of all words."""


def read_tags(file: Path) -> TaggedText:
    """Read the words and universal part-of-speech tags of a CoNLL-U file."""
    rows = [sentence.words for sentence in read_conllu(file)]
    sentences = [[columns[FORM] for columns in sentence] for sentence in rows]
    tags = [columns[UPOS] for sentence in rows for columns in sentence]
    if not tags:
        raise ValueError(f"{file} contains no words")
    if "_" in tags:
        word = list(itertools.chain(*sentences))[tags.index("_")]
        raise ValueError(f"{file}: {word!r} has no tag in the column UPOS. Tag all words")
    return TaggedText(sentences, tags)


def probe_tags(
    nlp: Language,
    train: TaggedText,
    test: TaggedText,
    progress: Callable[[int], object] = lambda n: None,
) -> TagScores:
    """Predict the tag of each word from its vector, by a logistic regression for each layer. Memory holds the vectors
    of both texts in all layers."""
    x_train, x_test = (_all_layers(nlp, text, progress) for text in (train, test))
    accuracies = []
    for layer in range(len(x_train)):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_ITERATIONS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x_train[layer], train.tags)
        accuracies.append(float(model.score(x_test[layer], test.tags)))
    return TagScores(
        words=len(test.tags),
        tags=len(set(train.tags)),
        layers=accuracies,
        most_frequent=_baseline_accuracy(train, test),
    )


def _all_layers(nlp: Language, text: TaggedText, progress: Callable[[int], object]) -> np.ndarray:
    """Return the layers of all words of a text, (layers, words, width) float32."""
    # Joining the sentences would need the memory twice, so copy each to its place.
    vectors = np.empty(0, dtype=np.float32)
    start = 0
    for sentence in sentence_layers(nlp, text.sentences, progress):
        n_layers, n_words, width = sentence.shape
        if not start:
            vectors = np.empty((n_layers, len(text.tags), width), dtype=np.float32)
        vectors[:, start : start + n_words] = sentence
        start += n_words
    return vectors


def _baseline_accuracy(train: TaggedText, test: TaggedText) -> float:
    """Return the accuracy of the baseline `TagScores.most_frequent`."""
    by_word: dict[str, Counter[str]] = {}
    for word, tag in zip(itertools.chain(*train.sentences), train.tags, strict=True):
        by_word.setdefault(word, Counter())[tag] += 1
    ((default, _),) = Counter(train.tags).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    answers = (best.get(word, default) for word in itertools.chain(*test.sentences))
    return float(np.mean([answer == tag for answer, tag in zip(answers, test.tags, strict=True)]))
