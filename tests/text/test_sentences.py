"""The sentence rule, compared with spaCy's own component."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_elmo.text.sentences import starts_of_kinds, word_kinds

VOCAB = spacy.blank("en").vocab
WORDS = [*'a Word 1 $ e.g. . ! ? 。 ؟ 𑅁 ... ?! ) " , «'.split(), " ", "  "]
# A vocabulary of spaCy takes no lone surrogate.
CHARACTERS = st.characters(exclude_categories=["Cs"])


def sentence_starts(words):
    return starts_of_kinds(word_kinds(words))


@given(st.lists(st.sampled_from(WORDS) | st.text(CHARACTERS, min_size=1, max_size=3)))
def test_starts_are_those_of_the_sentencizer(words):
    words = [word for word in words if "\n" not in word]
    expected = Sentencizer().predict([Doc(VOCAB, words=words)])[0]
    assert sentence_starts(words).tolist() == expected


def test_end_marks_are_those_of_the_sentencizer():
    """All code points, so that a mark that spaCy adds or drops is noticed."""
    marks = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    starts = sentence_starts([word for mark in marks for word in (mark, "a")])[1::2]
    ends = [mark for mark, start in zip(marks, starts, strict=True) if start and mark != "\n"]
    assert ends == sorted(Sentencizer.default_punct_chars)


@pytest.mark.parametrize(
    "words, starts",
    [
        ([], []),
        (["\n"], [0]),
        (["Title", "\n\n", "Text", "here"], [0, 2]),
        (["One", ".", "\n", "Two"], [0, 2, 3]),
        (["a", " \n ", "\t", "b"], [0, 2]),
        (["a", "  ", "b"], [0]),
        (["Hi", "!", '"', "Yes"], [0, 3]),
    ],
)
def test_newline_ends_a_sentence(words, starts):
    assert np.flatnonzero(sentence_starts(words)).tolist() == starts


@given(st.lists(st.lists(st.sampled_from([*WORDS, "\n", " \n"]), max_size=6), max_size=6))
def test_texts_end_to_end_are_cut_as_each_alone(texts):
    kinds = word_kinds([word for text in texts for word in text])
    actual = starts_of_kinds(kinds, [len(text) for text in texts]).tolist()
    assert actual == [start for text in texts for start in sentence_starts(text).tolist()]
