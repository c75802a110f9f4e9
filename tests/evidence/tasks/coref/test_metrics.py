"""MUC, B-cubed and CEAF-e give the numbers that papers have computed by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks.coref.matching import best_matching
from tasks.coref.metrics import b_cubed, ceaf_e, muc


def named(*clusters):
    """Return clusters of letters as clusters of mentions."""
    return [[(ord(letter), ord(letter) + 1) for letter in cluster] for cluster in clusters]


# Figure 8 of Pradhan et al. (2014), "Scoring coreference partitions of predicted mentions": h and i are no mentions of
# the key, e is none of the response.
KEY = named("abc", "defg")
RESPONSE = named("ab", "cd", "fghi")


@pytest.mark.parametrize(
    "metric, recall, precision",
    [
        (muc, (2, 5), (2, 5)),
        (b_cubed, (35 / 12, 7), (4, 8)),
        (ceaf_e, (1.3, 2), (1.3, 3)),
    ],
)
def test_partitions_of_predicted_mentions(metric, recall, precision):
    assert metric(KEY, RESPONSE) == pytest.approx(recall)
    assert metric(RESPONSE, KEY) == pytest.approx(precision)


def test_model_theoretic_scoring():
    """An example of Vilain et al. (1995): one chain of four mentions is found as two chains of two."""
    key, response = named("abcd"), named("ab", "cd")
    assert muc(key, response) == (2, 3)
    assert muc(response, key) == (2, 2)


@pytest.mark.parametrize(
    "response, expected", [(named("12345", "6789ABC"), 0.76), (named("1234589ABC", "67"), 0.58)]
)
def test_why_b_cubed(response, expected):
    """An example of Bagga and Baldwin (1998): two errors have the same MUC, but joining two large chains is worse."""
    key = named("12345", "67", "89ABC")
    actual, total = b_cubed(response, key)
    assert actual / total == pytest.approx(expected, abs=0.005)
    assert b_cubed(key, response) == (12, 12)
    assert muc(response, key) == (9, 10)


@pytest.mark.parametrize("metric", [muc, b_cubed, ceaf_e])
def test_nothing_predicted(metric):
    assert metric(KEY, [])[0] == 0 < metric(KEY, [])[1]
    assert metric([], KEY) == (0, 0)


partitions = st.lists(st.integers(0, 3), min_size=1, max_size=12).map(
    lambda owners: [
        [(place, place + 1) for place, owner in enumerate(owners) if owner == each]
        for each in sorted(set(owners))
    ]
)


@given(partitions)
def test_equal_clusters_are_perfect_in_any_order(clusters):
    for metric in (muc, b_cubed, ceaf_e):
        actual, total = metric(clusters, clusters[::-1])
        assert actual == pytest.approx(total)


@given(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(0, 9), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ).map(lambda rows: np.array(rows, dtype=float).reshape(shape))
    )
)
def test_best_matching_is_the_best_of_all(similarity):
    few, many = sorted(similarity.shape)
    wide = similarity if similarity.shape == (few, many) else similarity.T
    sums = [
        sum(wide[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(many), few)
    ]
    assert best_matching(similarity) == pytest.approx(max(sums))


def test_negative_similarity_is_refused():
    with pytest.raises(ValueError, match="-1"):
        best_matching(np.array([[1.0, -1.0]]))
