"""Code points become ids by the rule of ELMoForManyLangs, character by character."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.spelling import Alphabet

BOS, EOS, OOV, PAD, START, END = range(6)


@pytest.mark.parametrize(
    "word, row",
    [
        ("cat", [START, 6, 7, 8, END, PAD, PAD, PAD]),
        ("", [START, END, PAD, PAD, PAD, PAD, PAD, PAD]),
        ("c鳥🙂", [START, 6, 9, OOV, END, PAD, PAD, PAD]),
        ("catcatcat", [START, 6, 7, 8, 6, 7, 8, END]),
        ("<bos>", [START, BOS, END, PAD, PAD, PAD, PAD, PAD]),
        ("<eos>", [START, EOS, END, PAD, PAD, PAD, PAD, PAD]),
        ("<S>", [START, OOV, OOV, OOV, END, PAD, PAD, PAD]),
        ("\ud800", [START, OOV, END, PAD, PAD, PAD, PAD, PAD]),
    ],
)
def test_by_hand(word, row):
    ids = Alphabet("cat鳥").ids([word], 8)
    assert ids.dtype == np.int32
    assert ids.tolist() == [row]


def test_no_words():
    assert Alphabet("cat").ids([], 50).shape == (0, 50)


@given(st.lists(st.text("catéΩ鳥", max_size=20)), st.integers(7, 20))
def test_any_words(words, size):
    rows = {"c": 6, "a": 7, "t": 8}
    for word, ids in zip(words, Alphabet("cat").ids(words, size).tolist(), strict=True):
        spelt = [rows.get(character, OOV) for character in word][: size - 2]
        assert ids == [START, *spelt, END] + [PAD] * (size - 2 - len(spelt))
