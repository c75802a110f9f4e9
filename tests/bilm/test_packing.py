"""Packing is compared with a construction that adds one word at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.packing import Packing


def naive(lengths, closing):
    """Return the ranks, the rows of each step, and (sentence, forward position, backward position) of every packed
    row."""
    ranks = sorted(range(len(lengths)), key=lambda sentence: -lengths[sentence])
    rows, read = [], []
    for step in range(max(lengths, default=-1) + 2 + closing):
        reading = [s for s in ranks if step < lengths[s] + 1 + closing]
        if reading:
            rows.append(len(reading))
            read += [(s, step, lengths[s] + 1 - step) for s in reading]
    return ranks, rows, read


@given(st.lists(st.integers(0, 7), max_size=8), st.booleans())
def test_equals_the_naive_construction(lengths, closing):
    packing = Packing.of(lengths, closing=closing)
    ranks, rows, read = naive(lengths, closing)
    starts = np.concatenate([[0], np.cumsum([n + 2 for n in lengths])]).astype(int)
    assert packing.order.tolist() == ranks
    assert packing.batch_sizes == rows
    assert packing.positions[0].tolist() == [starts[s] + forward for s, forward, _ in read]
    assert packing.positions[1].tolist() == [starts[s] + backward for s, _, backward in read]


def test_numbers_to_check_by_hand():
    # <S> a </S> and <S> b c </S> lie at positions 0 1 2 and 3 4 5 6; the longer one goes first.
    packing = Packing.of([1, 2])
    assert packing.batch_sizes == [2, 2, 1]
    assert packing.order.tolist() == [1, 0]
    assert packing.positions.tolist() == [[3, 0, 4, 1, 5], [6, 2, 5, 1, 4]]


@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 9))
def test_chunks(lengths, max_words):
    packing = Packing.of(lengths)
    parts = list(packing.chunks(max_words))
    assert [n for part in parts for n in part] == packing.batch_sizes
    assert all(parts)
    # By pushing words: a step ends a part if the last word of the next one is beyond what the part may hold.
    expected, words, end = [[]], -len(lengths), max_words
    for n in packing.batch_sizes:
        words += n
        if words > end:
            expected.append([])
            end = -(-words // max_words) * max_words
        expected[-1].append(n)
    assert parts == [part for part in expected if part]


def test_chunks_of_one_sentence():
    # The first step reads the boundary, and belongs to the first word.
    assert list(Packing.of([5]).chunks(2)) == [[1, 1, 1], [1, 1], [1]]
    assert list(Packing.of([5]).chunks(5)) == [[1] * 6]
    assert list(Packing.of([2, 3]).chunks(5)) == [[2, 2, 2, 1]]
