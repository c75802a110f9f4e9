"""Batches, targets, the loss of a step and held-out perplexity, against word by word reading."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.bilm.head import Head, Negatives
from spacy_elmo.pretrain.corpus import Sentences
from spacy_elmo.pretrain.objective import Batcher, perplexity, sampled_loss, targets
from tests import tiny

TYPES = ["<S>", "</S>", "<UNK>", "a", "cat", "sat", "rare"]
VOCAB = 6  # "rare" is <UNK> as a target, and itself as input


@pytest.fixture
def bilm():
    return tiny.bilm(tiny.config())


@pytest.fixture
def batcher(bilm):
    return Batcher(bilm, TYPES, TYPES[:VOCAB])


def ids(*sentences: str) -> tuple[np.ndarray, np.ndarray]:
    words = [sentence.split() for sentence in sentences]
    flat = [TYPES.index(word) for sentence in words for word in sentence]
    return np.array(flat, dtype=np.int32), np.array([len(sentence) for sentence in words])


def test_batch_reads_characters_and_predicts_classes(bilm, batcher):
    batch = batcher(*ids("a rare cat", "a cat"))
    assert torch.equal(batch.token_ids, bilm.token_ids(["a", "cat", "rare"]))
    assert batch.classes.tolist() == [3, 4, 2, 0, 1]
    assert batch.words.tolist() == [0, 2, 1, 0, 1]


def test_targets_are_the_next_words_and_the_closing_boundary(bilm, batcher):
    batch = batcher(*ids("cat sat", "a rare cat"))
    reading = bilm.read(batch.token_ids, batch.words, batch.lengths)
    forward, backward = targets(reading, batch.classes)
    # Packed: first steps of the longer and the shorter sentence, then their second steps, ...
    assert [TYPES[i] for i in forward] == ["a", "cat", "<UNK>", "sat", "cat", "</S>", "</S>"]
    assert [TYPES[i] for i in backward] == ["cat", "sat", "<UNK>", "cat", "a", "<S>", "<S>"]


def word_by_word(bilm, head, sentences):
    """Cross-entropies (sentences of words) by reading one sentence at a time and indexing its layers."""
    losses = {"forward": [], "backward": []}
    for sentence in sentences:
        words = sentence.split()
        goals = [TYPES.index(w) if TYPES.index(w) < VOCAB else 2 for w in words]
        top = tiny.read(bilm, [words]).layers[-1]
        width = top.shape[1] // 2
        # What each direction says before any word: read from an empty sentence, which has only boundaries.
        opening = bilm.read(bilm.token_ids([]), np.array([], dtype=np.int64), [0]).outputs[-1]
        rows = {
            "forward": ([opening[0, 0], *top[:, :width]], [*goals, 1]),
            "backward": ([opening[1, 0], *top.flip(0)[:, width:]], [*goals[::-1], 0]),
        }
        for direction, (hidden, goal) in rows.items():
            logits = torch.stack(hidden) @ head.weight.t() + head.bias[:, 0]
            found = F.cross_entropy(logits, torch.tensor(goal), reduction="none").tolist()
            losses[direction] += zip(found, goal, strict=True)
    return losses


@torch.no_grad()
def test_perplexity_equals_word_by_word_reading(bilm, batcher):
    sentences = ["a rare cat sat", "cat", "a cat sat a cat", "rare"]
    flat, lengths = ids(*sentences)
    head = Head(VOCAB, 5)
    result = perplexity(bilm, head, batcher, Sentences(flat, np.append(0, np.cumsum(lengths))))
    losses = word_by_word(bilm, head, sentences)
    forward, backward = (np.mean([loss for loss, _ in losses[d]]) for d in ("forward", "backward"))
    assert result.forward == pytest.approx(math.exp(forward), rel=1e-5)
    assert result.backward == pytest.approx(math.exp(backward), rel=1e-5)
    assert result.mean == pytest.approx(math.exp((forward + backward) / 2), rel=1e-5)
    known = [
        np.mean([loss for loss, goal in losses[d] if goal != 2]) for d in ("forward", "backward")
    ]
    assert result.forward_known == pytest.approx(math.exp(known[0]), rel=1e-5)
    assert result.backward_known == pytest.approx(math.exp(known[1]), rel=1e-5)
    assert (result.targets, result.vocab_size) == (11 + 4, 6)
    assert result.unk_share == pytest.approx(2 / 15)


def test_perplexity_of_nothing(bilm, batcher):
    with pytest.raises(ValueError, match="No held-out sentence"):
        perplexity(
            bilm, Head(VOCAB, 5), batcher, Sentences(np.array([], dtype=np.int32), np.array([0]))
        )


def test_sampled_loss_is_the_mean_over_targets_and_directions(bilm, batcher):
    batch = batcher(*ids("a rare cat", "cat sat"))
    head = Head(VOCAB, 5)
    random = np.random.default_rng(0)
    negatives = [Negatives(VOCAB, 3, random) for _ in range(2)]
    loss = sampled_loss(bilm, head, batch, negatives, dropout=0.0).detach()
    reading = bilm.read(batch.token_ids, batch.words, batch.lengths)
    sums = [
        head.sampled_loss(reading.outputs[-1][d], torch.from_numpy(goal), negatives[d])
        for d, goal in enumerate(targets(reading, batch.classes))
    ]
    assert loss.item() == pytest.approx(sum(s.item() for s in sums) / (2 * 7), rel=1e-6)
