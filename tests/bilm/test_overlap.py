"""The mean of the vectors of tokens in several spans, by hand."""

import numpy as np
import torch

from spacy_elmo.pipeline.encode.shim import write_means


def test_means_of_two_and_of_one_and_none():
    target = torch.zeros(1, 4, 1)
    vectors = torch.tensor([[[1.0], [-0.0], [4.0]]], requires_grad=True)
    write_means(target, vectors, np.array([2, 0, 2]))
    assert target[0, :, 0].tolist() == [0, 0, 2.5, 0]
    assert torch.signbit(target[0, :, 0]).tolist() == [True, False, False, False]
    target.backward(torch.ones_like(target))
    assert vectors.grad[0, :, 0].tolist() == [0.5, 1, 0.5]


def test_vectors_are_added_in_their_order():
    """In any other order, the large numbers would not cancel before the small one comes."""
    target, big = torch.zeros(1, 1, 1), 3 * 2.0**30
    write_means(target, torch.tensor([[[big], [-big], [3.0]]]), np.array([0, 0, 0]))
    assert target.item() == 1
