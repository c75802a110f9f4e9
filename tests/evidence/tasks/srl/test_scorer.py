"""Arguments are counted as in CoNLL-2005; the expected counts were made by hand."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from tasks.srl.annotation import Argument, set_arguments, set_predicates
from tasks.srl.scorer import joined, make_srl_scorer


def example(found, gold):
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
    scores = make_srl_scorer()([example(found, gold)])
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
    assert make_srl_scorer()([example(one, other)])["srl_f"] == 0
    assert make_srl_scorer()([example(one, one)])["srl_f"] == 1


def test_totals_go_over_all_docs():
    right = example({1: [Argument(3, 4, "ARG0")]}, {1: [Argument(3, 4, "ARG0")]})
    missed = example({1: []}, {1: [Argument(3, 4, "ARG0"), Argument(5, 6, "ARG1")]})
    scores = make_srl_scorer()([right, missed])
    assert (scores["srl_p"], scores["srl_r"], scores["srl_f"]) == (1.0, 1 / 3, 0.5)


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
    scores = make_srl_scorer()([example(half, whole)])
    assert (scores["srl_p"], scores["srl_r"], scores["srl_f"]) == (0, 0, 0)
