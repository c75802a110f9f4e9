"""Occurrences of a word have the vectors of the component; the nearest and their map are checked by hand and by
loops."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.lab.contexts import (
    Occurrence,
    drawable,
    find_in_sentences,
    find_occurrences,
    nearest,
    project,
)
from spacy_elmo.lab.documents import Document, read_documents
from tests.lab.conftest import occurrences

TEXTS = [
    "The bank is old.  It isn't a BANK\nof money.",
    "No such thing here.",
    "embankments",  # holds the letters, not the word
    "Their bank, my bank!",
]


def find(nlp, texts, word):
    return find_occurrences(nlp, (Document(text, f"{i}.txt") for i, text in enumerate(texts)), word)


def test_occurrences_and_their_vectors(nlp):
    corpus = find(nlp, TEXTS, "Bank")
    found = [(o.left, o.word, o.right, o.source, o.sense) for o in corpus.items]
    assert found == [
        ("The ", "bank", " is old.", "0.txt", None),
        ("It isn't a ", "BANK", "", "0.txt", None),  # a new line ends a sentence
        ("Their ", "bank", ", my bank!", "3.txt", None),
        ("Their bank, my ", "bank", "!", "3.txt", None),
    ]
    docs = [nlp(TEXTS[0]), nlp(TEXTS[3])]
    tokens = [[t.i for t in doc if t.lower_ == "bank"] for doc in docs]
    expected = [doc._.elmo_layers[:, places] for doc, places in zip(docs, tokens, strict=True)]
    np.testing.assert_allclose(corpus.vectors, np.concatenate(expected, axis=1), atol=1e-5)
    # Of the passages with the word alone, and whitespace counts as nothing.
    words = [doc._.elmo_layers[:, [t.i for t in doc if not t.is_space]] for doc in docs]
    mean = np.concatenate(words, axis=1).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.center, mean, atol=1e-5)
    seen = corpus.vectors - mean
    lengths = np.linalg.norm(seen, axis=-1, keepdims=True)
    np.testing.assert_allclose(corpus.unit_vectors, seen / lengths, atol=1e-4)
    assert corpus.views == ["layer 0", "layer 1", "layer 2"]


@pytest.mark.parametrize(
    "word, text, found, tokens",
    [
        ("don't", "No, I don't.", ("No, I ", "don't", "."), [3, 4]),
        ("don't", "Don't go.", ("", "Don't", " go."), [0, 1]),
        ("DON'T", "Don't go.", ("", "Don't", " go."), [0, 1]),
        ("Don't", "DON'T GO.", ("", "DON'T", " GO."), [0]),  # which it does not split
        ("well-known", "A Well-Known bank", ("A ", "Well-Known", " bank"), [1, 2, 3]),
        (
            "well-known banks",
            "Two well-known banks",
            ("Two ", "well-known banks", ""),
            [1, 2, 3, 4],
        ),
        ("new  york", "The New York bank.", ("The ", "New York", " bank."), [1, 2]),
        ("don't", ["I", "don't", "."], ("I ", "don't", " ."), [1]),
        ("don't", ["I", "do", "n't", "."], ("I ", "do n't", " ."), [1, 2]),
    ],
)
def test_words_that_the_tokenizer_splits(nlp, word, text, found, tokens):
    corpus = find(nlp, ["I do, you do not.", text, "Well, known."], word)
    assert [(o.left, o.word, o.right) for o in corpus.items] == [found]
    doc = nlp(text if isinstance(text, str) else Doc(nlp.vocab, words=text))
    expected = doc._.elmo_layers[:, tokens].mean(axis=1)
    np.testing.assert_allclose(corpus.vectors[:, 0], expected, atol=1e-5)
    queries = find_in_sentences(nlp, [text], word, corpus)
    assert [(o.left, o.word, o.right) for o in queries.items] == [found]


@pytest.mark.parametrize(
    "word, problem",
    [
        ("", "'' is not a word"),
        (" \t", "is not a word"),
        ("loan", "'loan' does not occur in the text"),
    ],
)
def test_no_such_word(nlp, word, problem):
    with pytest.raises(ValueError, match=problem):
        find(nlp, TEXTS, word)


def test_queries_take_the_forms_of_the_corpus(nlp):
    corpus = find(nlp, TEXTS, "bank")
    sentences = ["The BANK, the bank.", ["a", "bank", "?"]]
    queries = find_in_sentences(nlp, sentences, "bank", corpus)
    assert [(o.left, o.word, o.right) for o in queries.items] == [
        ("The ", "BANK", ", the bank."), ("a ", "bank", " ?"),
    ]  # fmt: skip
    expected = nlp("The BANK, the bank.")._.elmo_layers[:, 1]
    np.testing.assert_allclose(queries.vectors[:, 0], expected, atol=1e-5)
    assert np.array_equal(queries.center, corpus.center)  # both are seen from one place
    assert find_in_sentences(nlp, [], "bank", corpus).vectors.shape == (3, 0, 10)
    with pytest.raises(ValueError, match="'No.' .*'bank'"):
        find_in_sentences(nlp, ["No."], "bank", corpus)


ANNOTATED = {
    "tokens": ["He", "banked", "the", "primary election", "."],
    "lemma": ["he", "bank", "the", "primary_election", "."],
    "sense": [None, "bank%2:40:00::", None, "primary_election%1:04:00::", None],
}


def test_annotated_text_is_searched_by_lemma_and_sense(nlp, tmp_path):
    other = {"tokens": ["bank"], "sense": [None]}  # the word, but no sense
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, (ANNOTATED, other))))
    (tmp_path / "b.txt").write_text("A bank.\n")
    read = list(read_documents(str(tmp_path), senses=True))
    corpus = find_occurrences(nlp, read, "bank")
    assert [(o.left, o.word, o.right, o.source, o.sense) for o in corpus.items] == [
        ("He ", "banked", " the primary election .", "a.jsonl:1", "bank%2:40:00::"),
        ("A ", "bank", ".", "b.txt:1", None),
    ]
    corpus = find_occurrences(nlp, read, "primary election")
    assert [o.word for o in corpus.items] == ["primary election"]
    words = ["He", "banked", "the", "primary", "election", "."]
    doc = nlp(Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(
        corpus.vectors[:, 0], doc._.elmo_layers[:, 3:5].mean(axis=1), atol=1e-5
    )
    queries = find_in_sentences(nlp, ["They banked."], "bank", find_occurrences(nlp, read, "bank"))
    assert [o.word for o in queries.items] == ["banked"]


def cosine(a, b):
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


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
def test_nearest_against_loops(size, asked, n, seed):
    random = np.random.default_rng(seed)
    vectors, asking = random.normal(size=(2, size, 3)), random.normal(size=(2, asked, 3))
    center = 0.5
    corpus = occurrences("w" * size, vectors, center)
    actual = nearest(occurrences("w" * asked, asking, center), corpus, n)
    assert len(actual) == asked
    for q, query in enumerate(actual):
        for view, nearby in enumerate(query):
            cosines = [cosine(asking[view, q] - center, v - center) for v in vectors[view]]
            best = sorted(cosines, reverse=True)[:n]
            assert [near.cosine for near in nearby] == pytest.approx(best, abs=1e-4)
            for near in nearby:
                place = corpus.items.index(near.occurrence)
                assert near.cosine == pytest.approx(cosines[place], abs=1e-5)


def nothing(views=1, width=2):
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


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_any_occurrences_have_a_plane(size, seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(2, size, 5))
    corpus = occurrences("w" * size, vectors)
    actual = project(corpus, nothing(2, 5))
    for view, plane in enumerate(actual):
        assert plane.points.shape == (size, 2) and np.isfinite(plane.points).all()
        assert 0 <= plane.shares[1] <= plane.shares[0] <= 1 + 1e-6
        # A projection brings points nearer to each other, never further apart.
        assert (distances(plane.points) <= distances(corpus.unit_vectors[view]) + 1e-5).all()


@pytest.mark.parametrize("size", [1, 5])
def test_one_direction_is_one_point(size):
    """Context-free vectors differ only by rounding, which must not fill the plane."""
    noise = 1e-7 * np.random.default_rng(0).normal(size=(1, size, 4))
    (plane,) = project(occurrences("w" * size, 1 + noise), nothing(width=4))
    assert np.array_equal(plane.points, np.zeros((size, 2)))
    assert plane.shares == (0, 0)


def test_planes_without_a_second_axis_are_not_drawn():
    """Two spellings are on a line, and one spelling is a point."""
    vectors = np.random.default_rng(0).normal(size=(3, 4, 5))
    vectors[0] = vectors[0, :1]
    vectors[1, 2:], vectors[1, 1] = vectors[1, 0], vectors[1, 0]
    planes = project(occurrences("wwww", vectors), nothing(3, 5))
    assert [plane.view for plane in drawable(planes)] == ["view 2"]
    assert [plane.view for plane in drawable(planes[:2])] == ["view 1"]
    assert drawable([]) == []
