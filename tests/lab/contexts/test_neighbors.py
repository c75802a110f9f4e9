"""The nearest occurrences are compared with loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.lab.contexts.neighbors import nearest
from spacy_elmo.lab.contexts.occurrences import Occurrence
from tests.lab.words import occurrences


def cosine(a, b):
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def names(neighbors):
    return [
        [[near.occurrence.left.strip() for near in view] for view in query] for query in neighbors
    ]


def test_by_hand():
    corpus = occurrences("abc", [[[1, 0], [2, 2], [0, -1]], [[0, 1], [0, 1], [0, 1]]])
    queries = occurrences("x", [[[3, 0]], [[0, 2]]])
    actual = nearest(queries, corpus, 2)
    assert names(actual) == [[["0", "1"], ["0", "1"]]]
    assert [near.cosine for near in actual[0][0]] == pytest.approx([1, math.sqrt(0.5)])
    assert [near.cosine for near in actual[0][1]] == pytest.approx([1, 1])


def test_seen_from_the_centre():
    """Relative to (1, 1), the vectors (2, 1) and (1, 2) are at a right angle, and (0, 1) is opposite to the first."""
    corpus = occurrences("ab", [[[1, 2], [0, 1]]], centre=1.0)
    queries = occurrences("x", [[[2, 1]]], centre=1.0)
    ((view,),) = nearest(queries, corpus, 2)
    assert [near.cosine for near in view] == pytest.approx([0, -1], abs=1e-6)


def test_repeated_phrases_count_once():
    actual = [
        Occurrence(left, "bank", right, "text")
        for left, right in (
            ("Oh, the old ", " is here."),
            ("See: the old ", " is here."),
            ("My ", "!"),
        )
    ]
    corpus = occurrences(actual, [[[1, 1], [1, 0], [0, 1]]])
    ((view,),) = nearest(occurrences("x", [[[1, 0]]]), corpus, 3)
    assert [near.occurrence for near in view] == [actual[1], actual[2]]


def test_rounding_does_not_reorder_equals():
    corpus = occurrences("ab", [[[1, 1e-7], [1, 0]]])
    ((view,),) = nearest(occurrences("x", [[[1, 0]]]), corpus, 2)
    assert [near.occurrence.word for near in view] == ["a", "b"]


@given(st.integers(1, 9), st.integers(0, 3), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_against_loops(size, asked, n, seed):
    random = np.random.default_rng(seed)
    vectors, asking = random.normal(size=(2, size, 3)), random.normal(size=(2, asked, 3))
    centre = 0.5
    corpus = occurrences("w" * size, vectors, centre)
    actual = nearest(occurrences("w" * asked, asking, centre), corpus, n)
    assert len(actual) == asked
    for q, query in enumerate(actual):
        for view, nearby in enumerate(query):
            cosines = [cosine(asking[view, q] - centre, v - centre) for v in vectors[view]]
            best = sorted(cosines, reverse=True)[:n]
            assert [near.cosine for near in nearby] == pytest.approx(best, abs=1e-4)
            for near in nearby:
                place = corpus.items.index(near.occurrence)
                assert near.cosine == pytest.approx(cosines[place], abs=1e-5)
