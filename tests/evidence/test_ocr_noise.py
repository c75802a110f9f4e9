"""Errors of optical character recognition: the number of changed words, the unchanged annotation, and single words by
hand."""

import random

import pytest
import spacy
from experiments.ocr_noise import CONFUSIONS, corrupt, corrupted
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span

WORDS = ["Anna", "Μῆνις", "left", "Harwick", "1848", ".", "ἄειδε"] * 300


@pytest.fixture
def docs(tmp_path):
    vocab = spacy.blank("xx").vocab
    n = len(WORDS)
    doc = Doc(
        vocab,
        words=WORDS,
        spaces=[i % 3 > 0 for i in range(n)],
        tags=["T"] * n,
        pos=["NOUN"] * n,
        lemmas=WORDS,
        heads=[max(0, i - 1) for i in range(n)],
        deps=["dep"] * n,
        morphs=["Case=Nom"] * n,
    )
    doc.set_ents([Span(doc, 0, 1, label="PERSON"), Span(doc, 3, 4, label="PLACE")])
    doc.cats = {"old": 1.0}
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "in.spacy")
    return tmp_path / "in.spacy"


def read(path):
    (doc,) = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    return doc


def test_a_share_of_the_words_changes_and_nothing_else(docs, tmp_path):
    counts = corrupt(docs, tmp_path / "new/out.spacy", 0.2, 1)
    before, after = read(docs), read(tmp_path / "new/out.spacy")
    assert len(before) == len(after)
    changed = [a.text != b.text for a, b in zip(before, after, strict=True)]
    assert counts == (1500, sum(changed))
    # 1,500 draws: four standard deviations are 62 words. A lost letter of a pair such as "ss" changes nothing visible.
    assert abs(sum(changed) - 300) < 62
    for a, b in zip(before, after, strict=True):
        assert (a.tag_, a.pos_, a.lemma_, a.dep_, a.head.i, str(a.morph), a.whitespace_) == (
            b.tag_, b.pos_, b.lemma_, b.dep_, b.head.i, str(b.morph), b.whitespace_,
        )  # fmt: skip
        assert (a.ent_iob_, a.ent_type_) == (b.ent_iob_, b.ent_type_)
        if not any(map(str.isalpha, a.text)):
            assert a.text == b.text
    assert after.cats == {"old": 1.0}


def test_shares_and_seeds(docs, tmp_path):
    def texts(share, seed):
        corrupt(docs, tmp_path / "out.spacy", share, seed)
        return [token.text for token in read(tmp_path / "out.spacy")]

    assert texts(0, 1) == WORDS
    assert texts(0.1, 1) == texts(0.1, 1) != texts(0.1, 2)
    assert sum(map(str.__ne__, texts(1, 1), WORDS)) > 1400


@given(st.text(min_size=1, max_size=30), st.integers(0, 99))
def test_errors_of_any_word(word, seed):
    new = corrupted(word, ["x", "y"], random.Random(seed))
    assert new
    if not any(map(str.isalpha, word)):
        assert new == word
    assert abs(len(new) - len(word)) <= 1 + (len(word) - 1) // 8


@pytest.mark.parametrize(
    "word, others", [("c", {"e"}), ("é", {"e"}), ("ῆ", {"η"}), ("m", {"rn", "ni"})]
)
def test_letters_that_look_alike(word, others):
    outcomes = {corrupted(word, ["x"], random.Random(seed)) for seed in range(300)}
    assert outcomes - {word, "x" + word} == others
    # The only letter of a word is never lost.
    assert word in outcomes


def test_confusions_go_both_ways():
    for sign, others in CONFUSIONS.items():
        for other in others:
            assert len(other) > 1 or sign in CONFUSIONS[other]
