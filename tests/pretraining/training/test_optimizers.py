"""Optimizers, learning rate and clipping."""

import numpy as np
import pytest
import torch
from torch import nn

from spacy_elmo.bilm.head import Head
from spacy_elmo.pretraining.config import Training
from spacy_elmo.pretraining.training.optimizers import (
    clip_gradients,
    decay_groups,
    learn_rate,
    optimizers,
    take_step,
)
from tests import tiny


def test_weight_decay_leaves_biases_alone():
    bilm = tiny.bilm(tiny.config(layers=1))
    names = {id(parameter): name for name, parameter in bilm.named_parameters()}
    decayed, others = ([names[id(p)] for p in group["params"]] for group in decay_groups(bilm))
    assert set(others) == {
        "encoder.filter_biases.0", "encoder.filter_biases.1", "encoder.filter_biases.2",
        "encoder.highways.0.carry.bias", "encoder.highways.0.transform.bias", "encoder.projection.bias",
        "lstm.0.bias",
    }  # fmt: skip
    assert set(decayed) == set(names.values()) - set(others)
    assert [group.get("weight_decay") for group in decay_groups(bilm)] == [None, 0.0]


def test_learn_rate():
    settings = Training(max_steps=1, learn_rate=1.0, warmup_steps=4, cooldown=0.5)
    assert [learn_rate(settings, step, 104) for step in (0, 1, 3)] == [0.25, 0.5, 1.0]
    assert [learn_rate(settings, step, 104) for step in (4, 30, 52)] == [1.0, 1.0, 1.0]
    assert learn_rate(settings, 78, 104) == pytest.approx(0.505)
    assert learn_rate(settings, 104, 104) == learn_rate(settings, 110, 104) == pytest.approx(0.01)
    flat = settings.model_copy(update={"cooldown": 0.0})
    assert [learn_rate(flat, step, 104) for step in (103, 104, 110)] == [1.0, 1.0, 1.0]
    assert learn_rate(settings, 1000, 0) == 1.0
    # The cooldown of a short run begins before the end of the warm-up.
    short = Training(max_steps=1, learn_rate=1.0, warmup_steps=8, cooldown=1.0)
    rates = [learn_rate(short, step, 10) for step in range(10)]
    assert rates[:4] == [0.125, 0.25, 0.375, 0.5]
    assert rates[4:] == pytest.approx([0.604, 0.505, 0.406, 0.307, 0.208, 0.109])


@pytest.mark.parametrize("limit", [0.1, 1e6])
def test_clipping_equals_that_of_torch(limit):
    """Sparse gradients, also with repeated rows, count as the dense gradients that they represent."""
    torch.manual_seed(0)
    table, dense = nn.Parameter(torch.randn(6, 3)), nn.Parameter(torch.randn(4))
    twin_table, twin_dense = (nn.Parameter(p.detach().clone()) for p in (table, dense))
    rows = torch.tensor([1, 4, 1])
    (nn.functional.embedding(rows, table, sparse=True).sum() ** 2 + dense.pow(2).sum()).backward()
    (nn.functional.embedding(rows, twin_table).sum() ** 2 + twin_dense.pow(2).sum()).backward()
    norm = clip_gradients([table, dense, nn.Parameter(torch.zeros(1))], limit)
    assert norm == pytest.approx(
        float(nn.utils.clip_grad_norm_([twin_table, twin_dense], limit)), rel=1e-5
    )
    torch.testing.assert_close(table.grad.to_dense(), twin_table.grad)
    torch.testing.assert_close(dense.grad, twin_dense.grad)


def numpy_steps(table, gradients, rate, clip):
    """Compute bilm-tf's Adagrad by its formulas: 20 times the gradient, clipped at 10, an initial accumulator of 1."""
    table, accumulator = table.copy(), np.ones_like(table)
    for gradient in gradients:
        gradient = 20 * gradient
        gradient = gradient * min(1.0, clip / np.linalg.norm(gradient))
        accumulator += gradient**2
        table -= rate * gradient / np.sqrt(accumulator)
    return table


@pytest.mark.parametrize("scale", [0.01, 10.0])
@pytest.mark.parametrize("negatives", [4, None])
def test_adagrad_takes_the_steps_of_bilm_tf(scale, negatives):
    """The gradient here is that of the mean loss, with a clip of 0.5; sparse (clipped and not clipped) and dense."""
    torch.manual_seed(0)
    head, nothing = Head(6, 3), nn.Module()
    settings = Training(optimizer="adagrad", negatives=negatives, learn_rate=0.2, grad_clip=0.5)
    adagrad = optimizers(nothing, head, settings, torch.float32)
    start, gradients = head.weight.detach().numpy().copy(), []
    for step in range(4):
        rows = torch.tensor([step, 5, 5])
        values = scale * torch.randn(3, 3)
        dense = torch.zeros(6, 3).index_add_(0, rows, values)
        sparse = torch.sparse_coo_tensor(rows[None], values, (6, 3), check_invariants=True)
        head.weight.grad = dense.clone() if negatives is None else sparse
        gradients.append(dense.numpy())
        clip_gradients([head.weight], settings.grad_clip)
        take_step(adagrad, settings.learn_rate)
        assert head.weight.grad is None
    expected = numpy_steps(start.astype(np.float64), gradients, 0.2, clip=10)
    np.testing.assert_allclose(head.weight.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adamw", "adagrad"])
@pytest.mark.parametrize("negatives", [4, None])
def test_every_parameter_has_one_optimizer(optimizer, negatives):
    bilm, head = tiny.bilm(tiny.config(layers=1)), Head(6, 5)
    actual = optimizers(
        bilm, head, Training(optimizer=optimizer, negatives=negatives), torch.float32
    )
    held = [id(p) for o in actual for group in o.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in [*bilm.parameters(), *head.parameters()])


@pytest.mark.parametrize("negatives", [4, None])
def test_the_head_does_not_decay(negatives):
    bilm, head = tiny.bilm(tiny.config(layers=1)), Head(6, 5)
    before = head.weight.detach().clone()
    for parameter in [*bilm.parameters(), *head.parameters()]:
        parameter.grad = torch.zeros_like(parameter)
    if negatives:
        head.weight.grad, head.bias.grad = (p.grad.to_sparse(1) for p in head.parameters())
    matrix = bilm.lstm[0].input
    start = matrix.detach().clone()
    settings = Training(negatives=negatives, weight_decay=0.1)
    take_step(optimizers(bilm, head, settings, torch.float32), rate=0.1)
    assert torch.equal(head.weight.detach(), before)
    torch.testing.assert_close(matrix.detach(), 0.99 * start)
