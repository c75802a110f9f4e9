"""Sentences of a prepared corpus, and their batches."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.pretraining import corpus
from spacy_elmo.pretraining.corpus import Batcher, Epoch
from tests import tiny
from tests.pretraining.conftest import sentences_of_sizes

lengths = st.lists(st.integers(1, 30), min_size=1, max_size=300)


@given(lengths, st.integers(1, 80), st.integers(0, 3), st.integers(0, 3))
def test_an_epoch_has_every_sentence_once(sizes, batch_tokens, seed, number):
    sentences = sentences_of_sizes(sizes)
    epoch = Epoch(sentences, batch_tokens=batch_tokens, seed=seed, epoch=number)
    batches = [epoch[i] for i in range(len(epoch))]
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
    for batch in batches:
        words = sentences.lengths[batch].sum()
        assert 0 < words < batch_tokens + max(sizes)
    again = Epoch(sentences, batch_tokens=batch_tokens, seed=seed, epoch=number)
    assert all((a == again[i]).all() for i, a in enumerate(batches))


def test_batches_are_of_like_length_and_epochs_differ():
    sizes = np.random.default_rng(0).integers(1, 100, 5000)
    epochs = [
        Epoch(sentences_of_sizes(sizes), batch_tokens=1000, seed=0, epoch=number)
        for number in (0, 1)
    ]
    spread = [np.ptp(sizes[epochs[0][i]]) for i in range(len(epochs[0]))]
    assert np.mean(spread) < 5
    assert epochs[0][0].tolist() != epochs[1][0].tolist()
    # Short and long sentences come mixed, not one after the other.
    means = [sizes[epochs[0][i]].mean() for i in range(len(epochs[0]))]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3


def test_batch_reads_characters_and_predicts_classes():
    types, bilm = ["<S>", "</S>", "<UNK>", "a", "cat", "sat", "rare"], tiny.bilm(tiny.config())
    ids = np.array([types.index(word) for word in "a rare cat a cat".split()], dtype=np.int32)
    batch = Batcher(bilm, types, types[:6])(ids, np.array([3, 2]))
    assert torch.equal(batch.token_ids, bilm.token_ids(["a", "cat", "rare"]))
    assert batch.classes.tolist() == [3, 4, 2, 0, 1]
    assert batch.type_of_word.tolist() == [0, 2, 1, 0, 1]


def test_take_puts_sentences_end_to_end():
    ids, sizes = sentences_of_sizes([2, 1, 3]).take(np.array([2, 0, 2]))
    assert ids.tolist() == [3, 4, 5, 0, 1, 3, 4, 5]
    assert sizes.tolist() == [3, 2, 3]
    assert sentences_of_sizes([2, 1]).take(np.array([], dtype=int))[0].tolist() == []


def test_chunks(monkeypatch):
    monkeypatch.setattr(corpus, "_IDS_PER_READ", 4)
    assert [ids.tolist() for ids in sentences_of_sizes([5, 2, 2]).chunks()] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8],
    ]
    assert [*sentences_of_sizes([]).chunks()] == []


def test_cut():
    assert sentences_of_sizes([5, 2, 4]).cut(2).offsets.tolist() == [0, 2, 4, 5, 7, 9, 11]
    assert sentences_of_sizes([5, 2, 4]).cut(9).offsets.tolist() == [0, 5, 7, 11]


def test_first():
    assert [sentences_of_sizes([2, 1, 3]).first(words).lengths.tolist() for words in (1, 2, 3, 4, 99)] == [
        [2], [2], [2, 1], [2, 1, 3], [2, 1, 3],
    ]  # fmt: skip
