"""Sentences of a prepared corpus."""

import numpy as np

from spacy_elmo.pretraining.corpus import prepared as corpus
from spacy_elmo.pretraining.corpus.prepared import Sentences


def make(sizes: list[int]) -> Sentences:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Sentences(np.arange(offsets[-1], dtype=np.int32), offsets)


def test_take_puts_sentences_end_to_end():
    ids, sizes = make([2, 1, 3]).take(np.array([2, 0, 2]))
    assert ids.tolist() == [3, 4, 5, 0, 1, 3, 4, 5]
    assert sizes.tolist() == [3, 2, 3]
    assert make([2, 1]).take(np.array([], dtype=int))[0].tolist() == []


def test_chunks(monkeypatch):
    monkeypatch.setattr(corpus, "_IDS_PER_READ", 4)
    assert [ids.tolist() for ids in make([5, 2, 2]).chunks()] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert [*make([]).chunks()] == []


def test_cut():
    assert make([5, 2, 4]).cut(2).offsets.tolist() == [0, 2, 4, 5, 7, 9, 11]
    assert make([5, 2, 4]).cut(9).offsets.tolist() == [0, 5, 7, 11]


def test_first():
    assert [make([2, 1, 3]).first(words).lengths.tolist() for words in (1, 2, 3, 4, 99)] == [
        [2], [2], [2, 1], [2, 1, 3], [2, 1, 3],
    ]  # fmt: skip
