"""Sentences of a prepared corpus."""

import numpy as np

from spacy_elmo.pretraining.corpus import prepared as corpus
from tests.pretraining.conftest import sentences_of_sizes


def test_take_puts_sentences_end_to_end():
    ids, sizes = sentences_of_sizes([2, 1, 3]).take(np.array([2, 0, 2]))
    assert ids.tolist() == [3, 4, 5, 0, 1, 3, 4, 5]
    assert sizes.tolist() == [3, 2, 3]
    assert sentences_of_sizes([2, 1]).take(np.array([], dtype=int))[0].tolist() == []


def test_chunks(monkeypatch):
    monkeypatch.setattr(corpus, "_IDS_PER_READ", 4)
    assert [ids.tolist() for ids in sentences_of_sizes([5, 2, 2]).chunks()] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8],
    ]
    assert [*sentences_of_sizes([]).chunks()] == []


def test_cut():
    assert sentences_of_sizes([5, 2, 4]).cut(2).offsets.tolist() == [0, 2, 4, 5, 7, 9, 11]
    assert sentences_of_sizes([5, 2, 4]).cut(9).offsets.tolist() == [0, 5, 7, 11]


def test_first():
    assert [sentences_of_sizes([2, 1, 3]).first(words).lengths.tolist() for words in (1, 2, 3, 4, 99)] == [
        [2], [2], [2, 1], [2, 1, 3], [2, 1, 3],
    ]  # fmt: skip
