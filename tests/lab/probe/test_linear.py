"""The linear classifier separates classes, and each step of its recipe has an effect."""

import numpy as np
import pytest
import torch

from spacy_elmo.lab.probe.linear import LinearClassifier, fit_linear


def clusters(rng, n, *, scale=1.0, shift=0.0):
    """Return three classes in ten dimensions. Three of the dimensions distinguish them."""
    classes = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 10)) * 0.5
    x[np.arange(n), classes] += 2
    return (x * scale + shift).astype(np.float32), classes


def test_accuracy_by_hand():
    classifier = LinearClassifier(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0.0, 2.5]))
    x = np.array([[3, 0], [2, 0], [0, 1], [5, 9]], dtype=np.float32)  # classes 0, 1, 1, 1
    assert classifier.accuracy(x, np.array([0, 1, 0, -1])) == 0.5


def test_separable_classes_are_found():
    rng = np.random.default_rng(0)
    train, dev, test = (clusters(rng, n) for n in (10000, 300, 300))
    # Chance is a third; the best possible one is that of the nearest centre.
    centre = (test[0][:, :3].argmax(1) == test[1]).mean()
    actual = fit_linear(train, dev, 3, seed=0).accuracy(*test)
    assert actual == pytest.approx(centre, abs=0.02) and centre > 0.95


def test_scale_and_shift_of_the_vectors_do_not_matter():
    fits = []
    for scale, shift in ((1, 0), (64, 0), (1 / 64, 8)):
        rng = np.random.default_rng(1)
        train, dev = (clusters(rng, n, scale=scale, shift=shift) for n in (1000, 200))
        fits.append(fit_linear(train, dev, 3, seed=0).accuracy(*dev))
    assert fits == pytest.approx([fits[0]] * 3, abs=0.011)


def test_the_seed_decides():
    rng = np.random.default_rng(2)
    train, dev = clusters(rng, 600), clusters(rng, 100)
    first, again, other = (fit_linear(train, dev, 3, seed=seed).weight for seed in (3, 3, 4))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_best_epoch_on_dev_is_kept():
    """The classes of `dev` are those of training in reverse, so the accuracy is best before much is learnt."""
    rng = np.random.default_rng(3)
    x, classes = clusters(rng, 2000)
    dev = (x[:200], (classes[:200] + 1) % 3)
    kept = fit_linear((x, classes), dev, 3, seed=0).accuracy(*dev)
    last = fit_linear((x, classes), (x, classes), 3, seed=0).accuracy(*dev)
    assert kept > last
