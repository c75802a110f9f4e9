"""The mean of carried states is compared with loops over the oracle."""

import itertools

import numpy as np
import pytest
import torch

from spacy_elmo.converters.start_state import mean_start_state
from tests import tiny
from tests.oracle import Oracle

WORDS = ["a", "cat", "naïve", "x" * 30, "end\0", "."]


def oracle_of(model):
    return Oracle(model.config, model.state_dict(), tiny.VOCABULARY[: model.config.n_words])


def text_of(count, seed=0):
    """Return random sentences of 0 to 5 words."""
    random = np.random.default_rng(seed)
    return [random.choice(WORDS, random.integers(0, 6)).tolist() for _ in range(count)]


def mean_by_loops(oracle, texts):
    """Return the mean state after each sentence except the first three of each text. Each text starts from zeros."""
    hs, cs = [], []
    for text in texts:
        state = oracle.zero_state()
        for place, sentence in enumerate(text):
            _, state = oracle.layers(sentence, state, closing=True)
            if place >= 3:
                hs.append(state[0])
                cs.append(state[1])
    return np.mean(hs, 0), np.mean(cs, 0)


@pytest.mark.parametrize(
    "config, sizes",
    [
        *itertools.product(
            [tiny.config(layers=3)], [[4], [7], [4, 4], [5, 5, 1], [4] * 16 + [3], [6] * 16]
        ),
        (tiny.config(n_words=8, cell_clip=None, proj_clip=None, skip=False), [5, 5]),
        (tiny.config(dim=5, forget_bias=0.0), [5] * 16),
    ],
)
def test_mean_equals_the_oracle(config, sizes):
    """There are at most 16 texts, in the order of the sentences. Sentences that are left over do not count."""
    model = tiny.bilm(config)
    sentences = text_of(sum(sizes))
    ends = np.cumsum(sizes)
    texts = [sentences[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    start = mean_start_state(model, sentences)
    h, c = mean_by_loops(oracle_of(model), texts)
    assert start.h.dtype == start.c.dtype == torch.float32
    np.testing.assert_allclose(start.h, h, atol=1e-5)
    np.testing.assert_allclose(start.c, c, atol=1e-5)
    assert not start.h.requires_grad
    again = mean_start_state(model, sentences)
    assert torch.equal(start.h, again.h) and torch.equal(start.c, again.c)
