"""Targets and the loss of a step."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.bilm.head import Head
from spacy_elmo.pretraining.loss import loss_sum, targets
from spacy_elmo.pretraining.sampled_softmax import Negatives, sampled_loss
from tests.pretraining.conftest import TYPES, VOCAB


def ids(*sentences: str) -> tuple[np.ndarray, np.ndarray]:
    words = [sentence.split() for sentence in sentences]
    flat = [TYPES.index(word) for sentence in words for word in sentence]
    return np.array(flat, dtype=np.int32), np.array([len(sentence) for sentence in words])


def test_targets_are_the_next_words_and_the_closing_boundary(bilm, batcher):
    batch = batcher(*ids("cat sat", "a rare cat"))
    reading = bilm.forward_packed(bilm.encode(batch.token_ids), batch.type_of_word, batch.lengths)
    forward, backward = targets(reading, batch.classes)
    # Packed: first steps of the longer and the shorter sentence, then their second steps, ...
    assert [TYPES[i] for i in forward] == ["a", "cat", "<UNK>", "sat", "cat", "</S>", "</S>"]
    assert [TYPES[i] for i in backward] == ["cat", "sat", "<UNK>", "cat", "a", "<S>", "<S>"]


@pytest.mark.parametrize("number", [3, None])
def test_loss_is_the_sum_over_targets_and_directions(bilm, batcher, number):
    batch = batcher(*ids("a rare cat", "cat sat"))
    head = Head(VOCAB, 5)
    random = np.random.default_rng(0)
    negatives = number and [Negatives(VOCAB, number, random) for _ in range(2)]
    reading = bilm.forward_packed(bilm.encode(batch.token_ids), batch.type_of_word, batch.lengths)
    expected = 0.0
    for direction, target in enumerate(torch.from_numpy(targets(reading, batch.classes))):
        hidden = reading.outputs[-1][direction]
        if negatives:
            expected += sampled_loss(head, hidden, target, negatives[direction]).item()
        else:
            logits = hidden @ head.weight.t() + head.bias[:, 0]
            expected += F.cross_entropy(logits, target, reduction="sum").item()
    loss = loss_sum(bilm, head, batch, negatives, dropout=0.0)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
