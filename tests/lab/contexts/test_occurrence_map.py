"""The plane of a word's occurrences is checked by its geometry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.lab.contexts.occurrence_map import drawable, project
from tests.lab.words import occurrences


def none(views=1, width=2):
    """Return an empty set of queries."""
    return occurrences("", np.zeros((views, 0, width)))


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


def test_directions_of_a_plane_keep_their_distances():
    vectors = np.array([[3.0, 0], [0, 2], [-1, -1], [5, 5]])
    turned = vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0][:2]
    (plane,) = project(occurrences("abcd", [turned]), occurrences("xy", [turned[[0, 3]]]))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(distances(plane.points), distances(unit), atol=1e-5)
    np.testing.assert_allclose(plane.queries, plane.points[[0, 3]], atol=1e-6)
    assert sum(plane.shares) == pytest.approx(1)
    np.testing.assert_allclose(plane.points.mean(axis=0), 0, atol=1e-6)


def test_shares_by_hand():
    """Four directions along two axes. Of the variance 8/3, the first axis has 2 and the second 2/3, so nothing is
    left."""
    axes = np.eye(3)
    vectors = [axes[0], -axes[0], axes[0], -axes[0], axes[1], -axes[1]]
    (plane,) = project(occurrences("abcdef", [vectors]), none(width=3))
    assert plane.shares == pytest.approx((4 / 6, 2 / 6))
    assert plane.points[:, 0].tolist() == pytest.approx([1, -1, 1, -1, 0, 0], abs=1e-6)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_any_occurrences_have_a_plane(size, seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(2, size, 5))
    corpus = occurrences("w" * size, vectors)
    actual = project(corpus, none(2, 5))
    for view, plane in enumerate(actual):
        assert plane.points.shape == (size, 2) and np.isfinite(plane.points).all()
        assert 0 <= plane.shares[1] <= plane.shares[0] <= 1 + 1e-6
        # A projection brings points nearer to each other, never further apart.
        assert (distances(plane.points) <= distances(corpus.unit_vectors[view]) + 1e-5).all()


def test_order_does_not_matter():
    vectors = np.random.default_rng(1).normal(size=(1, 8, 5))
    order = np.random.default_rng(2).permutation(8)
    (plane,) = project(occurrences("w" * 8, vectors), none(width=5))
    (other,) = project(occurrences("w" * 8, vectors[:, order]), none(width=5))
    np.testing.assert_allclose(other.points, plane.points[order], atol=1e-5)


@pytest.mark.parametrize("size", [1, 5])
def test_one_direction_is_one_point(size):
    """Context-free vectors differ only by rounding, which must not fill the plane."""
    noise = 1e-7 * np.random.default_rng(0).normal(size=(1, size, 4))
    (plane,) = project(occurrences("w" * size, 1 + noise), none(width=4))
    assert np.array_equal(plane.points, np.zeros((size, 2)))
    assert plane.shares == (0, 0)


def test_planes_without_a_second_axis_are_not_drawn():
    """Two spellings are on a line, and one spelling is a point."""
    vectors = np.random.default_rng(0).normal(size=(3, 4, 5))
    vectors[0] = vectors[0, :1]
    vectors[1, 2:], vectors[1, 1] = vectors[1, 0], vectors[1, 0]
    planes = project(occurrences("wwww", vectors), none(3, 5))
    assert [plane.view for plane in drawable(planes)] == ["view 2"]
    assert [plane.view for plane in drawable(planes[:2])] == ["view 1"]
    assert drawable([]) == []
