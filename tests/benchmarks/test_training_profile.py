"""The profile of a training step counts operations, and its shares of the time add up."""

import numpy as np
import pytest
import torch
import training_profile
from contest.training_step import Ours, make_batches

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.training.sampled_softmax import Negatives

CONFIG = BiLMConfig(
    dim=12, projection=6, layers=1, filters=[(1, 4)], char_dim=2, highways=0, max_characters=8
)


@pytest.fixture
def learner():
    head = Head(50, CONFIG.projection)
    negatives = Negatives(50, 7, np.random.default_rng(0))
    return Ours(BiLM(CONFIG), head, negatives, torch.float32), head


def test_operations_are_those_of_the_products(learner):
    learner, head = learner
    one, two = (make_batches([["a", "b", "c"]] * n, 100) for n in (4, 8))
    counted = [training_profile.count_operations(learner, batches, head) for batches in (one, two)]
    # Sentences of the same three words add nothing to the words' encoder. In each direction the LSTM reads a mark and
    # three words; it multiplies its input and its state by (6, 48) and its cells by (12, 6), forward and twice in the
    # backward pass, which needs no gradient of the state before the first step.
    lstm = 3 * 2 * 4 * 2 * (6 * 48 + 6 * 48 + 12 * 6) - 2 * 2 * 6 * 48
    # Four targets in each direction, beside seven negatives, whose bias is a further column in one of three products.
    softmax = 2 * 4 * 2 * 7 * (6 + 6 + 7)
    assert counted[1] - counted[0] == 4 * (lstm + softmax)


def test_shares_add_up_and_speeds_agree(learner):
    learner, head = learner
    batches = make_batches([["a", "b", "c"], ["b"]], 100)
    result = training_profile.measure(learner, batches, head, fastest=1e9)
    assert sum(result["shares"].values()) == pytest.approx(1)
    assert any(name.startswith("LSTM") for name in result["shares"])
    flops = result["MFLOP a word"] * 1e6 * result["words per second"]
    assert result["GFLOP/s"] == pytest.approx(flops / 1e9)
    assert result["utilization"] == pytest.approx(flops / 1e9)
