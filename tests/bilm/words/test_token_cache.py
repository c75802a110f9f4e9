"""A token encoder that remembers gives what the encoder gives, whatever it has read before."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.words.token_cache import TokenCache
from tests import tiny

WORDS = st.lists(st.text("abé鳥", max_size=3), max_size=6, unique=True)
ENCODER = tiny.bilm(tiny.config()).encoder
LEXICON_ENCODER = tiny.bilm(tiny.lexicon_config()).encoder


def counting(encoder, capacity):
    """A table, and the list of how many words were encoded in each call."""
    table, counts = TokenCache(encoder, capacity), []
    encode = encoder.forward
    table.encoder.forward = lambda ids: (counts.append(len(ids)), encode(ids))[1]
    return table, counts


@torch.no_grad()
def vectors(encoder, words):
    return encoder(encoder.ids(words))


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=8), st.integers(1, 9), st.sampled_from([ENCODER, LEXICON_ENCODER]))
def test_any_history(batches, capacity, encoder):
    table = TokenCache(encoder, capacity)
    for words in batches:
        found = vectors(table, words)
        assert found.shape == (len(words), encoder.config.projection)
        torch.testing.assert_close(found, vectors(encoder, words), atol=1e-6, rtol=0)


def test_known_words_are_not_encoded():
    table, counts = counting(tiny.bilm(tiny.config()).encoder, 100)
    vectors(table, ["a", "b", "c"])
    vectors(table, ["c", "a"])
    vectors(table, ["d", "a", "e"])
    assert counts == [3, 2]


def test_words_read_last_survive():
    table, counts = counting(tiny.bilm(tiny.config()).encoder, 4)
    vectors(table, ["a", "b", "c", "d"])
    vectors(table, ["a", "c"])
    vectors(table, ["e"])  # full: a and c move on
    vectors(table, ["a", "c", "e"])
    vectors(table, ["b"])
    assert counts == [4, 1, 1]


def test_a_batch_larger_than_the_table():
    table, counts = counting(tiny.bilm(tiny.config()).encoder, 3)
    words = [f"w{n}" for n in range(10)]
    for _ in range(2):
        torch.testing.assert_close(vectors(table, words), vectors(ENCODER, words))
    assert counts[0] == 10 and 7 <= counts[1] <= 10


def test_what_is_returned_is_not_what_is_kept():
    table = TokenCache(ENCODER, 10)
    expected = vectors(table, ["a", "b"]).clone()
    for _ in range(2):
        vectors(table, ["a", "b"]).zero_()
    assert torch.equal(vectors(table, ["a", "b"]), expected)


@pytest.mark.parametrize("capacity", [8, 1000])
def test_threads(capacity):
    table, wrong = TokenCache(ENCODER, capacity), []
    expected = {f"w{n}": vectors(ENCODER, [f"w{n}"])[0] for n in range(30)}

    def read(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(60):
            words = [f"w{n}" for n in torch.randperm(30, generator=generator)[:5].tolist()]
            for word, vector in zip(words, vectors(table, words), strict=True):
                if (vector - expected[word]).abs().max() > 1e-6:
                    wrong.append(word)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_words_that_are_read_alike_take_one_row():
    table, counts = counting(tiny.bilm(tiny.config()).encoder, 20)
    vectors(table, ["a", "b"])
    vectors(table, [f"the-same-{'x' * n}" for n in range(20, 38)])
    vectors(table, ["a", "b", "c", "d"])
    vectors(table, ["a", "b", "c", "d"])
    assert counts == [2, 18, 2]


def test_forgets():
    table, counts = counting(tiny.bilm(tiny.config()).encoder, 20)
    for _ in range(2):
        vectors(table, ["a", "b"])
        table.clear()
    assert counts == [2, 2]
