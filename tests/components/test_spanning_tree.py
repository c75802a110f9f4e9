"""The best tree of a sentence."""

import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.components.spanning_tree import best_heads


def is_tree(heads):
    """Whether there is one root, and a path from each word to it."""
    n = len(heads)
    word = np.arange(n)
    for _ in range(n):
        word = heads[word]
    return (heads == np.arange(n)).sum() == 1 and (heads[word] == word).all()


def total(scores, heads):
    return scores[np.arange(len(scores)), heads].sum(dtype="float64")


def trees(n):
    candidates = (np.array(heads) for heads in itertools.product(range(n), repeat=n))
    return [heads for heads in candidates if is_tree(heads)]


TREES = {n: trees(n) for n in range(1, 7)}


def scores(n, random):
    return st.lists(random, min_size=n * n, max_size=n * n).map(
        lambda numbers: np.array(numbers, dtype="float32").reshape(n, n)
    )


# Whole numbers have many ties. 1/8 is exact in float32, so sums are too.
NUMBERS = st.integers(-3, 3) | st.integers(-8000, 8000).map(lambda number: number / 8)


@given(st.integers(1, 6).flatmap(lambda n: scores(n, NUMBERS)))
@settings(max_examples=400, deadline=None)
def test_no_tree_has_a_higher_sum(scores):
    heads = best_heads(scores)
    assert is_tree(heads)
    assert total(scores, heads) == max(total(scores, other) for other in TREES[len(scores)])


def test_there_are_as_many_trees_as_cayley_counted():
    assert [len(TREES[n]) for n in TREES] == [n ** (n - 1) for n in TREES]


@pytest.mark.parametrize("n", [10, 20, 40])
@pytest.mark.parametrize("seed", range(3))
def test_networkx_finds_the_same_tree(n, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)).astype("float32")
    graph = networkx.DiGraph()
    for word, head in itertools.product(range(n), repeat=2):
        # A root costs more than any tree gains.
        source, price = ("root", 1e6) if word == head else (head, 0)
        graph.add_edge(source, word, weight=float(scores[word, head]) - price)
    expected = np.arange(n)
    for source, word in networkx.maximum_spanning_arborescence(graph).edges:
        expected[word] = word if source == "root" else source
    assert best_heads(scores).tolist() == expected.tolist()


def test_the_best_heads_are_taken_as_they_are_if_they_are_a_tree():
    assert best_heads(np.float32([[0, 9, 0], [0, 1, 0], [5, 0, 1]])).tolist() == [1, 1, 0]


def test_two_roots_become_one():
    """Each word is best alone. Word 0 loses 1 as a child of word 1; word 1 would lose 2."""
    assert best_heads(np.float32([[9, 8], [7, 9]])).tolist() == [1, 1]


def test_cycles_in_cycles():
    """Words i and i + 1 prefer each other, each pair more than the pair before it."""
    n = 50
    scores = np.full((n, n), -100, "float32")
    for word in range(n - 1):
        scores[word, word + 1], scores[word + 1, word] = word, word + 0.5
    scores[0, 0] = 0
    assert best_heads(scores).tolist() == [0, *range(n - 1)]
