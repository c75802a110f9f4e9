"""Held-out perplexity, compared with one sentence at a time."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.bilm.head import Head
from spacy_elmo.pretraining import perplexity as perplexity_module
from spacy_elmo.pretraining.corpus.batches import Batcher
from spacy_elmo.pretraining.corpus.prepared import Sentences
from spacy_elmo.pretraining.perplexity import NOTHING, perplexity, tally
from tests import tiny
from tests.pretraining.conftest import TYPES, VOCAB

SENTENCES = ["a rare cat sat", "cat", "a cat sat a cat", "rare"]


@pytest.fixture
def head():
    torch.manual_seed(0)
    return Head(VOCAB, 5)


def corpus(*sentences: str) -> Sentences:
    words = [sentence.split() for sentence in sentences]
    ids = [TYPES.index(word) for sentence in words for word in sentence]
    lengths = [len(sentence) for sentence in words]
    return Sentences(np.array(ids, dtype=np.int32), np.append(0, np.cumsum(lengths, dtype=int)))


@torch.no_grad()
def word_by_word(bilm, head, sentences):
    """Compute cross-entropies from one sentence at a time, indexing its layers."""
    losses = {"forward": [], "backward": []}
    for sentence in sentences:
        words = sentence.split()
        goals = [TYPES.index(w) if TYPES.index(w) < VOCAB else 2 for w in words]
        top = tiny.read(bilm, [words]).layers[-1]
        width = top.shape[1] // 2
        # What each direction says before any word: read from an empty sentence, which has only boundaries.
        opening = bilm.forward_packed(
            bilm.token_ids([]), np.array([], dtype=np.int64), [0]
        ).outputs[-1]
        rows = {
            "forward": ([opening[0, 0], *top[:, :width]], [*goals, 1]),
            "backward": ([opening[1, 0], *top.flip(0)[:, width:]], [*goals[::-1], 0]),
        }
        for direction, (hidden, target) in rows.items():
            logits = torch.stack(hidden) @ head.weight.t() + head.bias[:, 0]
            actual = F.cross_entropy(logits, torch.tensor(target), reduction="none").tolist()
            losses[direction] += zip(actual, target, strict=True)
    return losses


@pytest.mark.parametrize("batch_tokens", [3, 4096])
def test_equals_word_by_word_reading(bilm, head, batcher, batch_tokens, monkeypatch):
    monkeypatch.setattr(perplexity_module, "_BATCH_TOKENS", batch_tokens)
    result = perplexity(bilm, head, batcher, corpus(*SENTENCES))
    losses = word_by_word(bilm, head, SENTENCES)
    forward, backward = (np.mean([loss for loss, _ in losses[d]]) for d in ("forward", "backward"))
    assert result.forward == pytest.approx(math.exp(forward), rel=1e-5)
    assert result.backward == pytest.approx(math.exp(backward), rel=1e-5)
    assert result.mean == pytest.approx(math.exp((forward + backward) / 2), rel=1e-5)
    known = [
        np.mean([loss for loss, target in losses[d] if target != 2])
        for d in ("forward", "backward")
    ]
    assert result.forward_known == pytest.approx(math.exp(known[0]), rel=1e-5)
    assert result.backward_known == pytest.approx(math.exp(known[1]), rel=1e-5)
    assert result.mean_known == pytest.approx(math.exp(np.mean(known)), rel=1e-5)
    assert (result.targets, result.vocab_size) == (11 + 4, 6)
    assert result.unk_share == pytest.approx(2 / 15)


def test_tallies_of_parts_add_up(bilm, head, batcher):
    parts = [tally(bilm, head, batcher, corpus(*part)) for part in (SENTENCES[:3], SENTENCES[3:])]
    total = sum(parts, NOTHING).perplexity(VOCAB)
    whole = perplexity(bilm, head, batcher, corpus(*SENTENCES))
    assert (total.targets, total.unk_share) == (whole.targets, whole.unk_share)
    assert total.forward == pytest.approx(whole.forward, rel=1e-6)
    assert total.backward_known == pytest.approx(whole.backward_known, rel=1e-6)


def test_the_order_of_the_vocabulary_does_not_matter(bilm, head, batcher):
    order = [4, 2, 5, 0, 3, 1]
    other = Head(VOCAB, 5)
    with torch.no_grad():
        other.weight.copy_(head.weight[order])
        other.bias.copy_(head.bias[order])
    shuffled = Batcher(bilm, TYPES, [TYPES[row] for row in order])
    actual = perplexity(bilm, other, shuffled, corpus(*SENTENCES))
    whole = perplexity(bilm, head, batcher, corpus(*SENTENCES))
    assert actual.mean == pytest.approx(whole.mean, rel=1e-6)
    assert actual.unk_share == whole.unk_share


def test_nothing(bilm, head, batcher):
    with pytest.raises(ValueError, match="no sentence"):
        perplexity(bilm, head, batcher, corpus())
