"""A token encoder with a cache returns the same vectors as without it, whatever the cache contains."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.token_encoder import TokenCache
from tests import tiny

WORDS = st.lists(st.text("abé鳥", max_size=3), max_size=6, unique=True)
ENCODER = tiny.bilm(tiny.config()).encoder
LEXICON_ENCODER = tiny.bilm(tiny.lexicon_config()).encoder


def counting(encoder, capacity):
    """Return a cache, and a list of the number of words that each call has encoded."""
    cache, counts = TokenCache(encoder, capacity), []
    encode = encoder.forward
    cache.encoder.forward = lambda ids: (counts.append(len(ids)), encode(ids))[1]
    return cache, counts


@torch.no_grad()
def vectors(encoder, words):
    return encoder(encoder.ids(words))


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=8), st.integers(1, 9), st.sampled_from([ENCODER, LEXICON_ENCODER]))
def test_any_history(batches, capacity, encoder):
    cache = TokenCache(encoder, capacity)
    for words in batches:
        found = vectors(cache, words)
        assert found.shape == (len(words), encoder.config.projection)
        torch.testing.assert_close(found, vectors(encoder, words), atol=1e-6, rtol=0)


def test_cached_words_are_not_encoded():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 100)
    vectors(cache, ["a", "b", "c"])
    vectors(cache, ["c", "a"])
    vectors(cache, ["d", "a", "e"])
    assert counts == [3, 2]


def test_a_full_cache_starts_again_with_the_words_of_the_batch():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 4)
    vectors(cache, ["a", "b", "c", "d"])
    vectors(cache, ["a", "e"])
    vectors(cache, ["e", "a"])
    vectors(cache, ["b"])
    assert counts == [4, 1, 1]


def test_a_batch_larger_than_the_cache():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 3)
    words = [f"w{n}" for n in range(10)]
    for _ in range(2):
        torch.testing.assert_close(vectors(cache, words), vectors(ENCODER, words))
    assert counts[0] == 10 and 7 <= counts[1] <= 10


def test_returned_vectors_do_not_share_memory_with_the_cache():
    cache = TokenCache(ENCODER, 10)
    expected = vectors(cache, ["a", "b"]).clone()
    for _ in range(2):
        vectors(cache, ["a", "b"]).zero_()
    assert torch.equal(vectors(cache, ["a", "b"]), expected)


@pytest.mark.parametrize("capacity", [8, 1000])
def test_threads(capacity):
    cache, wrong = TokenCache(ENCODER, capacity), []
    expected = {f"w{n}": vectors(ENCODER, [f"w{n}"])[0] for n in range(30)}

    def read(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(60):
            words = [f"w{n}" for n in torch.randperm(30, generator=generator)[:5].tolist()]
            for word, vector in zip(words, vectors(cache, words), strict=True):
                if (vector - expected[word]).abs().max() > 1e-6:
                    wrong.append(word)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_words_with_the_same_ids_take_one_row():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 20)
    vectors(cache, ["a", "b"])
    vectors(cache, [f"the-same-{'x' * n}" for n in range(20, 38)])
    vectors(cache, ["a", "b", "c", "d"])
    vectors(cache, ["a", "b", "c", "d"])
    assert counts == [2, 18, 2]


def test_clear():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 20)
    for _ in range(2):
        vectors(cache, ["a", "b"])
        cache.clear()
    assert counts == [2, 2]
