"""Log-probabilities of words are compared with the oracle, which processes one sentence and direction at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.likelihood import build_language_model, log_probabilities
from spacy_elmo.bilm.weights import Weights
from tests import oracle, tiny

# Not in the order of any rule: rows are found by word.
VOCABULARY = ["cat", "</S>", "a", "<UNK>", "sat", "<S>"]
WORDS = ["a", "cat", "sat", "rare", "鳥"]


def make(**fields):
    bilm = tiny.bilm(tiny.config(**fields))
    torch.manual_seed(1)
    head = Head(len(VOCABULARY), 5)
    with torch.no_grad():
        head.bias.normal_()
    return bilm, head


def row(word):
    return VOCABULARY.index(word if word in VOCABULARY else "<UNK>")


def score(bilm, head, sentences, max_words=1000):
    types, words, lengths = tiny.batch(bilm, sentences)
    distinct = sorted({word for sentence in sentences for word in sentence})
    classes = np.array([row(word) for word in [*distinct, "<S>", "</S>"]])
    return log_probabilities(bilm, head, types, classes, words, lengths, max_words=max_words)


def expected(bilm, head, sentence):
    """Return the log-probabilities of each direction in its own order, for each word, then for the closing boundary."""
    tensors = {name: tensor.numpy() for name, tensor in bilm.state_dict().items()}
    reader = oracle.Oracle(bilm.config, tensors, tiny.VOCABULARY)
    weight, bias = head.weight.detach().double().numpy(), head.bias.detach().double().numpy()[:, 0]
    h, c = reader.zero_state()
    scores = []
    for direction, targets in enumerate([[*sentence, "</S>"], [*sentence[::-1], "<S>"]]):
        outputs, _ = reader.run(sentence, direction, (h[:, direction], c[:, direction]))
        scores.append(-oracle.full_loss(outputs[-1], [row(w) for w in targets], weight, bias))
    return scores


def check(bilm, head, sentences, max_words=1000):
    found = score(bilm, head, sentences, max_words)
    ends = np.cumsum([len(sentence) for sentence in sentences])
    assert found.words.shape == (2, ends[-1]) and found.closing.shape == (2, len(sentences))
    for number, (sentence, end) in enumerate(zip(sentences, ends, strict=True)):
        forward, backward = expected(bilm, head, sentence)
        words = found.words[:, end - len(sentence) : end]
        np.testing.assert_allclose(words[0], forward[:-1], atol=2e-5)
        np.testing.assert_allclose(words[1], backward[:-1][::-1], atol=2e-5)
        np.testing.assert_allclose(found.closing[:, number], [forward[-1], backward[-1]], atol=2e-5)


@settings(max_examples=15)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=7), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_equals_the_oracle(sentences, max_words):
    """All sentence lengths, also empty sentences, and all numbers of words at once give the same results."""
    check(*make(), sentences, max_words)


def test_word_input_and_one_layer():
    bilm, head = make(n_words=len(tiny.VOCABULARY), layers=1)
    check(bilm, head, [["a", "rare", "cat"], ["sat"]])


def test_weights_without_a_head():
    bilm, head = make()
    with pytest.raises(ValueError, match="no head.*model-best.safetensors"):
        build_language_model(Weights.from_bilm(bilm))
    with pytest.raises(ValueError, match="no <S>, <UNK>"):
        build_language_model(Weights.from_bilm(bilm, Head(2, 5), vocabulary=["</S>", "a"]))
    _, read = build_language_model(Weights.from_bilm(bilm, head, vocabulary=VOCABULARY))
    assert torch.equal(read.weight, head.weight)
