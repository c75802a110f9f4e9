"""Token encoders are compared with their parts, and the cache with the encoder."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.token_encoder import Alphabet, CharEncoder, TokenCache
from tests import tiny


@torch.no_grad()
def encode(model, words):
    return model.encoder(model.token_ids(words)).numpy()


@pytest.mark.parametrize("words", [0, 8])
def test_no_words(words):
    assert encode(tiny.bilm(tiny.config(n_words=words)), []).shape == (0, 5)


LEXICA = [{}, {"n_symbols": 0}, {"n_words": 0, "word_dim": 0}]


@pytest.mark.parametrize("fields", LEXICA)
def test_lexicon_by_parts(fields):
    """The result is a matrix times [word vector ; character features]. Either part may be absent."""
    model = tiny.bilm(tiny.lexicon_config(highways=0, **fields))
    encoder, words = model.encoder, ["Cat", "cat", "unheard"]
    rows = [tiny.LEXICON.index(word) for word in ("Cat", "cat", "<oov>")]
    parts = [encoder.words[rows]] if encoder.words is not None else []
    if encoder.cnn is not None:
        alphabet = Alphabet(tiny.ALPHABET)
        parts.append(encoder.cnn(torch.from_numpy(alphabet.ids(words, 12))))
    expected = torch.cat(parts, 1) @ encoder.projection.weight + encoder.projection.bias
    np.testing.assert_allclose(encode(model, words), expected.detach(), atol=1e-6)
    assert encode(model, []).shape == (0, 5)


def test_a_word_is_cut_before_it_is_looked_up():
    model = tiny.bilm(tiny.lexicon_config(n_symbols=0, max_characters=7))
    model.set_vocabulary(["<oov>", "<bos>", "<eos>", "aaaaa", "aaaaaa", "b", "c", "d"])
    assert model.token_ids(["aaaaa", "aaaaaa", "a" * 100, "aaaa"]).tolist() == [[3], [3], [3], [0]]


def test_boundaries_have_names_of_their_own():
    model = tiny.bilm(tiny.lexicon_config())
    assert model.encoder.boundaries == ("<bos>", "<eos>")
    ids = model.token_ids(["<bos>", "<eos>", "<S>"])
    assert ids[:, 0].tolist() == [1, 2, 0]
    # The start of a word, the boundary, the end of a word; <S> is three characters, all of them unknown.
    assert ids[:, 1:5].tolist() == [[4, 0, 5, 3], [4, 1, 5, 3], [4, 2, 2, 2]]


def test_names_that_do_not_fit_a_table_of_words():
    model = tiny.bilm(tiny.config(n_words=8))
    with pytest.raises(ValueError, match="no <S>, </S>, <UNK>"):
        model.set_vocabulary(list("abcdefgh"))
    with pytest.raises(ValueError, match="3 words, .* 8 rows"):
        model.set_vocabulary(["<S>", "</S>", "<UNK>"])
    assert model.token_ids(["cat", "dog"]).tolist() == [4, 2]


@pytest.mark.parametrize("fields", LEXICA)
def test_names_that_do_not_fit_the_tables(fields):
    model = tiny.bilm(tiny.lexicon_config(**fields))
    if model.encoder.cnn is not None:
        with pytest.raises(
            ValueError,
            match=r"7 together, .* 18 rows",
        ):
            model.set_vocabulary(tiny.LEXICON, "a")
        if model.encoder.words is None:
            return
    alphabet = model.encoder.alphabet
    with pytest.raises(ValueError, match="no <eos>$"):
        model.set_vocabulary(["<oov>", "<bos>", *"abcdef"], alphabet)
    with pytest.raises(ValueError, match="3 words, .* 8 rows"):
        model.set_vocabulary(["<oov>", "<bos>", "<eos>"], alphabet)


@torch.no_grad()
def test_initial_values():
    """The moments of the initial values are those of bilm-tf's distributions."""
    torch.manual_seed(0)
    encoder = CharEncoder(tiny.config(char_dim=16, filters=((1, 600),), projection=64))
    assert encoder.characters.abs().max() <= 1
    assert float(encoder.characters.std()) == pytest.approx(3**-0.5, rel=0.05)
    assert float(encoder.filters[0].abs().max()) == pytest.approx(0.05, rel=0.01)
    assert float(encoder.projection.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert float(encoder.highways[0].carry.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert (encoder.highways[0].carry.bias == -2).all()
    assert (encoder.highways[0].transform.bias == 0).all()


BATCH = st.lists(st.text("abé鳥", max_size=3), max_size=6, unique=True)
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
    return torch.as_tensor(encoder.vectors(words))


@settings(max_examples=60, deadline=None)
@given(st.lists(BATCH, max_size=8), st.integers(1, 9), st.sampled_from([ENCODER, LEXICON_ENCODER]))
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
def test_threads_share_the_cache(capacity):
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


def test_words_with_the_same_beginning():
    """Of a long word, the cache keeps only the characters that the encoder reads, and no more becomes a boundary."""
    cache, counts = counting(tiny.bilm(tiny.config(max_characters=4)).encoder, 20)
    words = ["</S>", "</S>x", "</S", "<S>", "<S>x", "abcdef", "abcdefg", "abcdefgh", "ab" + "é" * 9]
    torch.testing.assert_close(vectors(cache, words), vectors(cache.encoder, words))
    torch.testing.assert_close(vectors(cache, words), vectors(cache.encoder, words))
    vectors(cache, ["abcdef" + "g" * 10_000])
    assert counts == [len(words), len(words), len(words)]


def test_a_cleared_cache():
    cache, counts = counting(tiny.bilm(tiny.config()).encoder, 20)
    for _ in range(2):
        vectors(cache, ["a", "b"])
        cache.clear()
    assert counts == [2, 2]
