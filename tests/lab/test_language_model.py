"""Scores of tokens and their substitutes are compared with the oracle and with brute force."""

import dataclasses

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab import language_model
from spacy_elmo.lab.language_model import LanguageModel
from spacy_elmo.pipeline.encode.spans import whole_docs, windows_v1
from tests import oracle, tiny

VOCABULARY = ["cat", "</S>", "a", "<UNK>", "sat", "<S>", ".", "on"]


@pytest.fixture(scope="module")
def weights():
    torch.manual_seed(2)
    head = Head(len(VOCABULARY), 5)
    with torch.no_grad():
        head.weight.mul_(3)
        head.bias.normal_()
    return Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY)


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en")


def row(word):
    return VOCABULARY.index(word if word in VOCABULARY else "<UNK>")


def logits(weights, sentence):
    """Return (n + 1, V), the logits of each direction in its order, from the oracle."""
    head = weights.build_head()
    tensors = {n: t.numpy() for n, t in weights.tensors.items() if not n.startswith("head.")}
    reader = oracle.Oracle(weights.config, tensors)
    h, c = reader.zero_state()
    for direction in (0, 1):
        outputs, _ = reader.run(sentence, direction, (h[:, direction], c[:, direction]))
        yield (
            outputs[-1] @ head.weight.detach().double().numpy().T
            + head.bias.detach().double().numpy()[:, 0]
        )


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def expected_score(weights, sentence):
    forward, backward = (log_softmax(each) for each in logits(weights, sentence))
    n = len(sentence)
    words = [row(word) for word in sentence]
    return (
        forward[np.arange(n), words],
        backward[::-1][1:][np.arange(n), words],
        (forward[n, row("</S>")], backward[n, row("<S>")]),
    )


TEXT = ["a", "cat", "sat", ".", "\n", "rare", "cat", ".", " ", "on"]
SENTENCES = [(0, 1, 2, 3), (5, 6, 7), (9,)]


@pytest.mark.parametrize("max_words", [1, 5, 4096])
def test_score_equals_the_oracle(weights, nlp, monkeypatch, max_words):
    monkeypatch.setattr(language_model, "MAX_WORDS", max_words)
    doc = Doc(nlp.vocab, words=TEXT)
    actual = LanguageModel(weights).score(doc)
    for number, places in enumerate(SENTENCES):
        forward, backward, closing = expected_score(weights, [TEXT[i] for i in places])
        np.testing.assert_allclose(actual.forward[list(places)], forward, atol=2e-5)
        np.testing.assert_allclose(actual.backward[list(places)], backward, atol=2e-5)
        np.testing.assert_allclose(actual.closing[:, number], closing, atol=2e-5)
    space = np.isin(np.arange(len(TEXT)), [4, 8])
    assert np.array_equal(np.isnan(actual.forward), space)
    assert np.array_equal(np.isnan(actual.backward), space)
    assert np.flatnonzero(actual.unknown).tolist() == [5]
    assert actual.closing.shape == (2, 3)


@pytest.mark.parametrize("max_words, rows", [(1, 4096), (5, 8), (4096, 4096)])
@pytest.mark.parametrize("context", ["before", "after", "both"])
def test_substitutes_are_the_best_of_all_words(weights, nlp, monkeypatch, context, max_words, rows):
    """In batches of few words, and with logits of a few contexts (two of eight rows) at a time."""
    monkeypatch.setattr(language_model, "MAX_WORDS", max_words)
    monkeypatch.setattr(Head, "rows_per_block", rows)
    doc = Doc(nlp.vocab, words=TEXT)
    actual = LanguageModel(weights).all_substitutes(doc, 3, context)
    words = [word for word in VOCABULARY if word not in ("<S>", "</S>", "<UNK>")]
    for places in SENTENCES:
        forward, backward = map(log_softmax, logits(weights, [TEXT[i] for i in places]))
        for place, i in enumerate(places):
            before, after = forward[place], backward[len(places) - 1 - place]
            scores = {"before": before, "after": after, "both": before + after}[context]
            fitting = log_softmax(scores[[row(word) for word in words]])
            ranked = sorted(zip(fitting, words, strict=True), reverse=True)
            expected = [(word, score) for score, word in ranked if word != TEXT[i]][:3]
            assert [s.word for s in actual[i]] == [word for word, _ in expected]
            np.testing.assert_allclose(
                [s.log_probability for s in actual[i]], [p for _, p in expected], atol=5e-5
            )
    assert actual[4] == actual[8] == []
    # A word of the vocabulary has four others; one outside it has all five.
    every = LanguageModel(weights).all_substitutes(doc, context=context)
    assert [len(words) for words in every] == [4, 4, 4, 4, 0, 5, 4, 4, 0, 4]


def test_substitutes_of_one_token(weights, nlp):
    doc = Doc(nlp.vocab, words=TEXT)
    model = LanguageModel(weights)
    whole = model.all_substitutes(doc, n=4)
    for i in (3, 6, 9):
        alone = model.substitutes(doc[i], n=4)
        if native.processor():
            assert alone == whole[i]
        else:
            assert [s.word for s in alone] == [s.word for s in whole[i]]
    assert model.all_substitutes(doc[5:8], n=4)[1][0].word == whole[6][0].word
    assert model.substitutes(doc[4]) == []


def test_other_spans(weights, nlp):
    doc = Doc(nlp.vocab, words=["a", "cat", ".", "sat"])
    actual = LanguageModel(weights, get_spans=whole_docs).score(doc)
    forward, backward, _ = expected_score(weights, ["a", "cat", ".", "sat"])
    np.testing.assert_allclose(actual.forward, forward, atol=2e-5)
    np.testing.assert_allclose(actual.backward, backward, atol=2e-5)
    model = LanguageModel(weights, get_spans=windows_v1(3, 1))
    with pytest.raises(ValueError, match="of get_spans overlap"):
        model.score(doc)


def test_empty_docs(weights, nlp):
    model = LanguageModel(weights)
    for words in ([], [" "]):
        doc = Doc(nlp.vocab, words=words)
        assert model.score(doc).forward.shape == (len(words),)
        assert model.score(doc).closing.shape == (2, 0)
        assert model.all_substitutes(doc) == [[]] * len(words)


def test_from_file(weights, nlp, tmp_path):
    weights.save(tmp_path / "lm.safetensors")
    doc = Doc(nlp.vocab, words=TEXT)
    actual = LanguageModel.from_file(tmp_path / "lm.safetensors").score(doc)
    np.testing.assert_array_equal(actual.forward, LanguageModel(weights).score(doc).forward)
    weights.without_head().save(tmp_path / "bare.safetensors")
    with pytest.raises(ValueError, match="no head"):
        LanguageModel.from_file(tmp_path / "bare.safetensors")


def test_the_own_word_is_left_out_in_the_spelling_of_the_bilm(weights, nlp):
    config = dataclasses.replace(weights.config, replace=(("v", "u"),))
    vocabulary = ["uia" if word == "cat" else word for word in VOCABULARY]
    latin = dataclasses.replace(weights, config=config, vocabulary=vocabulary)
    model = LanguageModel(latin)
    for word in ("via", "uia"):
        doc = Doc(nlp.vocab, words=["a", word, "sat"])
        found = model.substitutes(doc[1])
        assert found and "uia" not in [substitute.word for substitute in found]
