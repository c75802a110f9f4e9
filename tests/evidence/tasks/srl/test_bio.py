"""Tags encode arguments, and the best path is the best of all allowed paths."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks.srl.annotation import Argument
from tasks.srl.bio import best_path, decode, encode, n_tags

LABELS = ("ARG0", "ARG1", "ARGM-TMP")


@st.composite
def sentences(draw):
    """Return arguments that do not overlap, and the length of their sentence."""
    borders = sorted(draw(st.sets(st.integers(0, 12), min_size=2)))
    spans = [
        Argument(start, end, draw(st.sampled_from(LABELS)))
        for start, end in itertools.pairwise(borders)
        if draw(st.booleans())
    ]
    return spans, borders[-1]


def test_tags_of_a_sentence():
    actual = [Argument(0, 1, "ARG1"), Argument(1, 4, "ARG0"), Argument(5, 6, "ARGM-TMP")]
    tags = encode(actual, 7, LABELS)
    #                      B-ARG1 B-ARG0 I  I  O  B-TMP O
    assert tags.tolist() == [3, 1, 2, 2, 0, 5, 0]
    assert n_tags(LABELS) == 7
    assert decode(tags, LABELS) == actual


def test_unknown_label_is_left_out():
    assert encode([Argument(0, 2, "ARG5"), Argument(2, 3, "ARG0")], 3, LABELS).tolist() == [0, 0, 1]


@given(sentences())
def test_round_trip(sentence):
    actual, length = sentence
    assert decode(encode(actual, length, LABELS), LABELS) == actual


def allowed(path):
    """Return True if every tag that continues an argument follows one of the same label."""
    return all(
        tag == 0 or tag % 2 == 1 or before in (tag, tag - 1)
        for before, tag in itertools.pairwise((0, *path))
    )


@pytest.mark.parametrize("seed", range(20))
def test_best_path_against_all_paths(seed):
    scores = np.random.default_rng(seed).normal(size=(5, 5)).astype("f")
    paths = filter(allowed, itertools.product(range(5), repeat=5))
    expected = max(paths, key=lambda path: sum(scores[i, tag] for i, tag in enumerate(path)))
    assert best_path(scores) == list(expected)


def test_argument_begins_where_it_must():
    """For single tokens tag 2 would win twice, but it cannot begin an argument, and as a begin tag 3 loses to tag 1."""
    scores = np.log(np.array([[0.1, 0.2, 0.6, 0.1, 0.0], [0.2, 0.0, 0.5, 0.3, 0.0]]) + 1e-30)
    assert best_path(scores) == [1, 2]
    assert best_path(scores[:1]) == [1]
