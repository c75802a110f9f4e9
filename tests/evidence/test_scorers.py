"""Scores of the tasks, and the tags of semantic roles, by hand, as in the papers, or by brute force."""

import itertools

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example
from tasks.coref import b_cubed, ceaf_e, muc
from tasks.qa import score_qa, set_answer, word_f1
from tasks.srl import Argument, best_path, decode, encode, score_srl, set_arguments, set_predicates

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


@given(sentences())
def test_tags_of_roles(sentence):
    actual, length = sentence
    assert decode(encode(actual, length, LABELS), LABELS) == actual


def allowed(path):
    """Return True if every tag that continues an argument follows one of the same label."""
    return all(
        tag == 0 or tag % 2 == 1 or before in (tag, tag - 1)
        for before, tag in itertools.pairwise((0, *path))
    )


@pytest.mark.parametrize("seed", range(5))
def test_best_path_against_all_paths(seed):
    scores = np.random.default_rng(seed).normal(size=(5, 5)).astype("f")
    paths = filter(allowed, itertools.product(range(5), repeat=5))
    expected = max(paths, key=lambda path: sum(scores[i, tag] for i, tag in enumerate(path)))
    assert best_path(scores) == list(expected)


def test_roles_counted_by_hand():
    """Arguments belong to their predicate. The parts of a discontinuous argument count as one."""
    gold = {
        2: [Argument(0, 2, "ARG0"), Argument(3, 5, "ARG1"), Argument(6, 8, "C-ARG1")],
        5: [Argument(0, 2, "ARG0"), Argument(6, 8, "ARGM-TMP"), Argument(9, 10, "C-V")],
    }
    found = {  # right; half of it; missing and right
        2: [Argument(0, 2, "ARG0"), Argument(3, 5, "ARG1")],
        5: [Argument(6, 8, "ARGM-TMP")],
    }
    docs = []
    for arguments in (found, gold):
        docs.append(Doc(spacy.blank("en").vocab, words=list("abcdefghij")))
        set_predicates(docs[-1], dict.fromkeys(gold, "be.01"))
        set_arguments(docs[-1], arguments)
    scores = score_srl([Example(*docs)])
    assert (scores["srl_p"], scores["srl_r"]) == (2 / 3, 2 / 4)
    assert scores["srl_per_type"] == {
        "ARG0": {"p": 1.0, "r": 0.5, "f": 2 / 3},
        "ARG1": {"p": 0.0, "r": 0.0, "f": 0.0},
        "ARGM-TMP": {"p": 1.0, "r": 1.0, "f": 1.0},
    }


def named(*clusters):
    """Return clusters of letters as clusters of mentions."""
    return [[(ord(letter), ord(letter) + 1) for letter in cluster] for cluster in clusters]


@pytest.mark.parametrize(
    "metric, recall, precision",
    [
        (muc, (2, 5), (2, 5)),
        (b_cubed, (35 / 12, 7), (4, 8)),
        (ceaf_e, (1.3, 2), (1.3, 3)),
    ],
)
def test_coreference(metric, recall, precision):
    """Figure 8 of Pradhan et al. (2014), "Scoring coreference partitions of predicted mentions": h and i are no
    mentions of the key, e is none of the response."""
    key, response = named("abc", "defg"), named("ab", "cd", "fghi")
    assert metric(key, response) == pytest.approx(recall)
    assert metric(response, key) == pytest.approx(precision)


@pytest.mark.parametrize(
    "found, gold, expected",
    [
        ("in the Denver Broncos", "Denver Broncos", 0.8),
        ("Denver  Broncos.", "the denver broncos", 1),
        ("Carolina Panthers", "Denver Broncos", 0),
        # A word counts as often as it stands in both.
        ("very very good", "very good very quiet", 2 * (3 / 3) * (3 / 4) / (3 / 3 + 3 / 4)),
        ("", "Denver", 0),
    ],
)
def test_answers(found, gold, expected):
    assert word_f1(found, gold) == pytest.approx(expected)


def test_answers_are_scored_over_answered_questions():
    nlp, examples = spacy.blank("en"), []
    for found, gold in (((4, 7), (5, 7)), ((5, 6), (5, 7)), (None, (5, 7)), ((4, 5), None)):
        docs = [nlp.make_doc("Who won?\nThe Denver Broncos won it.") for _ in range(2)]
        for doc, place in zip(docs, (found, gold), strict=True):
            if place:
                set_answer(doc, *place)
        examples.append(Example(*docs))
    assert score_qa(examples) == pytest.approx({"qa_em": 1 / 3, "qa_f": (1 + 2 / 3 + 0) / 3})
