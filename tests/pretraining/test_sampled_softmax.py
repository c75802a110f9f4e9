"""The sampled softmax: loss and gradients equal the oracle and autograd; words are sampled as by TensorFlow."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.kernels import native
from spacy_elmo.pretraining.sampled_softmax import (
    Negatives,
    sampled_loss,
    sampled_probabilities,
)
from tests import oracle
from tests.bilm.test_head import WORDS, arrays, make


def draw(words=WORDS, number=8, seed=0):
    return Negatives(words, number, np.random.default_rng(seed))


def dense_logits(hidden, weight, bias, targets, negatives):
    """Return the logits of all words, -1e9 for those that are neither target nor negative."""
    scores = hidden @ weight.T + bias[:, 0] - negatives.log_count(torch.arange(WORDS))
    allowed = torch.zeros(len(targets), WORDS, dtype=torch.bool)
    allowed[:, negatives.rows] = True
    allowed[torch.arange(len(targets)), targets] = True
    return scores.masked_fill(~allowed, -1e9)


@torch.no_grad()
@pytest.mark.parametrize("number", [1, 8, WORDS])
@pytest.mark.parametrize("seed", range(3))
def test_sampled_loss_equals_the_oracle(number, seed):
    head, hidden, targets = make(seed=seed)
    negatives = draw(number=number, seed=seed)
    expected = oracle.sampled_loss(
        hidden, targets, *arrays(head), negatives.rows.tolist(), negatives.tries
    )
    assert float(sampled_loss(head, hidden, targets, negatives)) == pytest.approx(
        expected.sum(), rel=1e-5
    )


def test_gradients_are_sparse_and_equal_dense_autograd():
    head, hidden, targets = make()
    negatives = draw()
    hidden.requires_grad_()
    weight, bias = (p.detach().clone().requires_grad_() for p in (head.weight, head.bias))
    logits = dense_logits(hidden, weight, bias, targets, negatives)
    dense = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    expected = torch.autograd.grad(dense, [weight, bias, hidden])

    sampled = sampled_loss(head, hidden, targets, negatives)
    torch.testing.assert_close(sampled, dense)
    sampled.backward()
    assert head.weight.grad.is_sparse and head.bias.grad.is_sparse
    touched = set(head.weight.grad.coalesce().indices()[0].tolist())
    assert touched == set(targets.tolist()) | set(negatives.rows.tolist())
    got = [head.weight.grad.to_dense(), head.bias.grad.to_dense(), hidden.grad]
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [*native.processors(), "portable"])
def test_loss_with_a_teacher_equals_dense_autograd(kind, monkeypatch):
    """The cross-entropy to a mixture: a fifth the target, four fifths the softmax of the teacher."""
    monkeypatch.setenv(native.CHOICE, kind)
    head, hidden, targets = make()
    other, theirs, _ = make(seed=1)
    negatives = draw()
    with torch.no_grad():
        probabilities = sampled_probabilities(other, theirs, targets, negatives)
        logits = dense_logits(theirs, other.weight, other.bias, targets, negatives)
        mixture = 0.8 * logits.softmax(1)
        mixture[torch.arange(len(targets)), targets] += 0.2
    hidden.requires_grad_()
    weight, bias = (p.detach().clone().requires_grad_() for p in (head.weight, head.bias))
    logits = dense_logits(hidden, weight, bias, targets, negatives)
    dense = -(mixture * logits.log_softmax(1)).sum()
    expected = torch.autograd.grad(dense, [weight, bias, hidden])

    sampled = sampled_loss(head, hidden, targets, negatives, probabilities)
    torch.testing.assert_close(sampled, dense)
    sampled.backward()
    got = [head.weight.grad.to_dense(), head.bias.grad.to_dense(), hidden.grad]
    for one, another in zip(got, expected, strict=True):
        torch.testing.assert_close(one, another)


def test_a_biLM_that_is_its_own_teacher_learns_from_the_words_alone():
    head, hidden, targets = make()
    negatives = draw()
    hidden.requires_grad_()
    with torch.no_grad():
        own = sampled_probabilities(head, hidden, targets, negatives)
    taught = torch.autograd.grad(sampled_loss(head, hidden, targets, negatives, own), hidden)
    alone = torch.autograd.grad(sampled_loss(head, hidden, targets, negatives), hidden)
    torch.testing.assert_close(taught[0], 0.2 * alone[0])


@pytest.mark.parametrize("words, number", [(1, 1), (2, 1), (30, 30), (1000, 900), (50_000, 2048)])
def test_negatives_are_distinct_words(words, number):
    negatives = draw(words, number)
    rows = negatives.rows.tolist()
    assert len(rows) == len(set(rows)) == number
    assert 0 <= min(rows) and max(rows) < words
    assert negatives.tries >= number
    assert torch.equal(negatives.log_counts, negatives.log_count(negatives.rows))


def test_the_largest_random_number_is_the_last_word():
    # 1 is beyond every random number; rounding in exp and log may come to the same.
    one = SimpleNamespace(random=np.ones, permutation=np.random.default_rng(0).permutation)
    negatives = Negatives(10, 1, one)
    assert negatives.rows.tolist() == [9]
    assert negatives.tries == 1


def test_draws_as_tensorflow_does():
    """The numbers of tries and the frequencies of words are those of TensorFlow's loop; the expected counts are their
    means."""
    words, number, repeats = 20, 5, 4000
    random = np.random.default_rng(0)
    p = np.log((np.arange(words) + 2) / (np.arange(words) + 1)) / np.log(words + 1)
    frequency, tries = np.zeros(words), []
    for _ in range(repeats):
        drawn = random.choice(words, 100, p=p)
        chosen: list[int] = []
        for n, word in enumerate(drawn.tolist(), 1):
            if word not in chosen:
                chosen.append(word)
            if len(chosen) == number:
                tries.append(n)
                break
        frequency[chosen] += 1 / repeats
    ours, expected, our_tries = np.zeros(words), np.zeros(words), []
    for _ in range(repeats):
        negatives = Negatives(words, number, random)
        ours[negatives.rows] += 1 / repeats
        expected += negatives.log_count(torch.arange(words)).exp().numpy() / repeats
        our_tries.append(negatives.tries)
    # Six standard deviations of a difference of two frequencies.
    assert np.abs(ours - frequency).max() < 6 * (0.5 / repeats) ** 0.5
    assert np.mean(our_tries) == pytest.approx(np.mean(tries), rel=0.02)
    # The formula takes the number of tries as given, which is nearly so.
    np.testing.assert_allclose(expected, ours, atol=0.04)
