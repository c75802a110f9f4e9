"""Character ids are compared with exact rows, and with a naive loop for all other words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.spelling import char_ids
from tests import oracle


@pytest.mark.parametrize(
    "word, row",
    [
        ("cat", [258, 99, 97, 116, 259, 260, 260, 260]),
        ("", [258, 259, 260, 260, 260, 260, 260, 260]),
        ("<S>", [258, 256, 259, 260, 260, 260, 260, 260]),
        ("</S>", [258, 257, 259, 260, 260, 260, 260, 260]),
        # Case matters: these are ordinary words.
        ("<s>", [258, 60, 115, 62, 259, 260, 260, 260]),
        # Bytes, not characters.
        ("é", [258, 0xC3, 0xA9, 259, 260, 260, 260, 260]),
        ("鳥", [258, 0xE9, 0xB3, 0xA5, 259, 260, 260, 260]),
        ("\0ÿ", [258, 0, 0xC3, 0xBF, 259, 260, 260, 260]),
        # Six bytes fit into eight positions.
        ("sixsix", [258, *b"sixsix", 259]),
        ("sevense", [258, *b"sevens", 259]),
        # Cut inside the second bird.
        ("aa鳥鳥", [258, 97, 97, 0xE9, 0xB3, 0xA5, 0xE9, 259]),
        # UTF-8 cannot hold a lone surrogate.
        ("a\ud800b", [258, 97, 63, 98, 259, 260, 260, 260]),
    ],
)
def test_row(word, row):
    ids = char_ids([word], 8)
    assert ids.tolist() == [row]
    assert oracle.char_ids(word, 8) == row


def test_no_words():
    ids = char_ids([], 50)
    assert ids.shape == (0, 50)
    assert ids.dtype == np.int16


def test_hundred_thousand_characters():
    (row,) = char_ids(["x" * 100_000], 50)
    assert row.tolist() == [258, *[ord("x")] * 48, 259]


any_text = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=20)


@given(
    st.lists(any_text | st.sampled_from(["<S>", "</S>"]), max_size=6),
    st.integers(3, 30),
)
def test_equals_the_naive_loop(words, size):
    naive = [oracle.char_ids(word, size) for word in words]
    assert char_ids(words, size).tolist() == naive
