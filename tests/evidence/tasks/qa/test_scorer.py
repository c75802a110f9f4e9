"""Exact match and F1 are the same as in the program of SQuAD 1.1."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.training import Example
from tasks.qa.annotation import set_answer
from tasks.qa.scorer import normal_words, score_qa, word_f1


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


@given(st.text("ab the.", max_size=12), st.text("ab the.", max_size=12))
def test_f1_is_symmetric_and_one_where_the_words_are_the_same(found, gold):
    assert word_f1(found, gold) == word_f1(gold, found)
    assert 0 <= word_f1(found, gold) <= 1
    assert word_f1(found, found) == (1 if normal_words(found) else 0)


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
