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
from tasks.qa import normal_words, score_qa, set_answer, word_f1
from tasks.srl import (
    Argument,
    best_path,
    decode,
    encode,
    joined,
    score_srl,
    set_arguments,
    set_predicates,
)

# Semantic roles: BIO tags


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


@pytest.mark.parametrize("seed", range(5))
def test_best_path_against_all_paths(seed):
    scores = np.random.default_rng(seed).normal(size=(5, 5)).astype("f")
    paths = filter(allowed, itertools.product(range(5), repeat=5))
    expected = max(paths, key=lambda path: sum(scores[i, tag] for i, tag in enumerate(path)))
    assert best_path(scores) == list(expected)


# Semantic roles: scores


def example_of_roles(found, gold):
    """Return an example of ten words, with arguments for each predicate."""
    vocab = spacy.blank("en").vocab
    docs = []
    for arguments in (found, gold):
        doc = Doc(vocab, words=list("abcdefghij"))
        set_predicates(doc, dict.fromkeys(gold, "be.01"))
        set_arguments(doc, arguments)
        docs.append(doc)
    return Example(*docs)


def test_counted_by_hand():
    gold = {
        2: [Argument(0, 2, "ARG0"), Argument(3, 5, "ARG1"), Argument(6, 8, "ARGM-TMP")],
        5: [Argument(0, 2, "ARG0"), Argument(6, 8, "ARG1")],
    }
    found = {
        # Right; too long; right; and one that is not there.
        2: [
            Argument(0, 2, "ARG0"),
            Argument(3, 6, "ARG1"),
            Argument(6, 8, "ARGM-TMP"),
            Argument(8, 9, "ARGM-NEG"),
        ],
        # The span is right, the role is not; ARG0 is missing.
        5: [Argument(6, 8, "ARG2")],
    }
    scores = score_srl([example_of_roles(found, gold)])
    # 2 of 5 found are right, of 5 that are there.
    assert (scores["srl_p"], scores["srl_r"]) == (2 / 5, 2 / 5)
    assert scores["srl_f"] == pytest.approx(2 / 5)
    per_type = scores["srl_per_type"]
    assert per_type["ARG0"] == {"p": 1.0, "r": 0.5, "f": 2 / 3}
    assert per_type["ARG1"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert per_type["ARGM-TMP"] == {"p": 1.0, "r": 1.0, "f": 1.0}
    assert list(per_type) == ["ARG0", "ARG1", "ARG2", "ARGM-NEG", "ARGM-TMP"]


def test_arguments_belong_to_their_predicate():
    one = {1: [Argument(3, 4, "ARG0")], 2: []}
    other = {1: [], 2: [Argument(3, 4, "ARG0")]}
    assert score_srl([example_of_roles(one, other)])["srl_f"] == 0
    assert score_srl([example_of_roles(one, one)])["srl_f"] == 1


def test_continuations_are_pieces_of_one_argument():
    pieces = [Argument(6, 8, "C-ARG1"), Argument(0, 2, "ARG1"), Argument(3, 4, "ARG0")]
    assert joined(pieces) == {("ARG1", ((0, 2), (6, 8))), ("ARG0", ((3, 4),))}


def test_continuation_of_nothing_is_an_argument():
    assert joined([Argument(0, 1, "C-ARG1"), Argument(2, 3, "ARG1")]) == {
        ("ARG1", ((0, 1),)),
        ("ARG1", ((2, 3),)),
    }


def test_predicates_do_not_count():
    assert joined([Argument(2, 3, "C-V"), Argument(4, 5, "R-ARG0")]) == {("R-ARG0", ((4, 5),))}


def test_half_of_a_discontinuous_argument_is_wrong():
    whole = {4: [Argument(0, 2, "ARG1"), Argument(6, 8, "C-ARG1")]}
    half = {4: [Argument(0, 2, "ARG1")]}
    scores = score_srl([example_of_roles(half, whole)])
    assert (scores["srl_p"], scores["srl_r"], scores["srl_f"]) == (0, 0, 0)


# Coreference


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


# Question answering


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The Denver Broncos!", ["denver", "broncos"]),
        ("  an  A-Team \n", ["ateam"]),
        ("Santa Clara, California.", ["santa", "clara", "california"]),
        ("theatre of a-the", ["theatre", "of", "athe"]),
        ("$50–$60", ["50–60"]),
        ("the", []),
    ],
)
def test_normal_words(text, expected):
    assert normal_words(text) == expected


@pytest.mark.parametrize(
    "found, gold, expected",
    [
        ("in the Denver Broncos", "Denver Broncos", 0.8),
        ("Denver Broncos.", "the denver broncos", 1),
        ("Carolina Panthers", "Denver Broncos", 0),
        # A word counts as often as it stands in both.
        ("very very good", "very good very quiet", 2 * (3 / 3) * (3 / 4) / (3 / 3 + 3 / 4)),
        ("", "Denver", 0),
    ],
)
def test_word_f1(found, gold, expected):
    assert word_f1(found, gold) == pytest.approx(expected)


def asked(nlp, found, gold):
    text = "Who won?\nThe Denver Broncos won it."
    example = Example(nlp.make_doc(text), nlp.make_doc(text))
    for doc, place in ((example.predicted, found), (example.reference, gold)):
        if place:
            set_answer(doc, *place)
    return example


def test_means_over_answered_questions():
    nlp = spacy.blank("en")
    examples = [
        asked(nlp, (4, 7), (5, 7)),  # "The Denver Broncos", "Denver Broncos"
        asked(nlp, (5, 6), (5, 7)),
        asked(nlp, None, (5, 7)),
        asked(nlp, (4, 5), None),
    ]
    assert score_qa(examples) == pytest.approx({"qa_em": 1 / 3, "qa_f": (1 + 2 / 3 + 0) / 3})
    assert score_qa(examples[3:]) == {"qa_em": None, "qa_f": None}
