"""Optimizers, among them Muon, compared with their formulas; learning rate and clipping."""

import numpy as np
import pytest
import torch
from torch import nn

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.config import Training
from spacy_elmo.pretraining.optimizers import (
    Muon,
    clip_gradients,
    learn_rate,
    muon_matrices,
    nearly_orthogonal,
    optimizers,
    take_step,
)
from tests import tiny


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


LARGE = {"layers": 2, "dim": 72, "projection": 64, "filters": [[1, 32], [2, 40]], "highways": 1}


@pytest.fixture
def bilm() -> BiLM:
    torch.manual_seed(0)
    return tiny.bilm(tiny.config(**LARGE))


def gradients(bilm: BiLM, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in bilm.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def matrices(values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the matrices of a state dict, listed by hand: two directions of four gates, projections, highways."""
    result = {}
    for layer in range(2):
        for side, direction in enumerate(("forward", "backward")):
            for number, gate in enumerate("ijfo"):
                columns = slice(72 * number, 72 * (number + 1))
                for kind in ("input", "recurrent"):
                    stacked = values[f"lstm.{layer}.{kind}"]
                    result[f"{layer} {direction} {gate} {kind}"] = stacked[side, :, columns]
            result[f"{layer} {direction} projection"] = values[f"lstm.{layer}.projection"][side]
    for gate in ("carry", "transform"):
        result[gate] = values[f"encoder.highways.0.{gate}.weight"]
    result["projection"] = values["encoder.projection.weight"]
    return result


def numpy_step(matrix, buffer, gradient, rate):
    """Compute a step in float64: momentum, five Newton-Schulz iterations."""
    buffer = 0.95 * buffer + 0.05 * gradient
    x = polynomial(torch.from_numpy(0.95 * buffer + 0.05 * gradient)).numpy()
    return matrix - 0.2 * np.sqrt(max(matrix.shape)) * rate * x, buffer


@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 0.025), (torch.float32, 1e-4)])
def test_steps_are_those_of_the_formula(bilm, dtype, most):
    rate = 0.01
    expected = {n: m.detach().double().numpy() for n, m in matrices(bilm.state_dict()).items()}
    buffers = dict.fromkeys(expected, 0.0)
    start = {n: m.copy() for n, m in expected.items()}
    optimizer = Muon(muon_matrices(bilm), rate, dtype)
    for step in range(2):
        gradients(bilm, step)
        given = {name: p.grad for name, p in bilm.named_parameters()}
        for name, gradient in matrices(given).items():
            expected[name], buffers[name] = numpy_step(
                expected[name], buffers[name], gradient.double().numpy(), rate
            )
        optimizer.step()
    for name, matrix in matrices(bilm.state_dict()).items():
        change, right = matrix.double().numpy() - start[name], expected[name] - start[name]
        assert np.abs(change - right).max() < most * np.abs(right).max(), name


@pytest.mark.parametrize("negatives", [4, None])
def test_every_number_of_every_parameter_has_one_optimizer(bilm, negatives):
    """AdamW updates what Muon does not, and one step changes every number."""
    head = Head(6, 64)
    settings = Training(optimizer="muon", negatives=negatives, learn_rate=0.01)
    actual = optimizers(bilm, head, settings, torch.bfloat16)
    kinds = ["Muon", "AdamW"] + ["SparseAdam"] * bool(negatives)
    assert [type(each).__name__ for each in actual] == kinds
    held = [p for each in actual for group in each.param_groups for p in group["params"]]
    parameters = [*bilm.parameters(), *head.parameters()]
    places = [p.data_ptr() for p in parameters]
    assert sum(p.numel() for p in held) == sum(p.numel() for p in parameters)
    assert {id(p) for p in held} >= {id(p) for p in head.parameters()}
    by_adamw = {id(p) for group in actual[1].param_groups for p in group["params"]}
    names = {name for name, p in bilm.named_parameters() if id(p) in by_adamw}
    assert all("bias" in name or "characters" in name or "filters" in name for name in names)
    start = [p.detach().clone() for p in parameters]
    gradients(bilm, 0)
    for parameter in head.parameters():
        parameter.grad = torch.ones_like(parameter)
        if negatives:
            parameter.grad = parameter.grad.to_sparse(1)
    take_step(actual, 0.01)
    for parameter, before in zip(parameters, start, strict=True):
        # A very small change may round to none.
        assert (parameter.detach() != before).float().mean() > 0.99
    assert all(p.grad is None for p in parameters)
    assert [p.data_ptr() for p in parameters] == places


def test_small_matrices_are_left_to_adamw():
    bilm = tiny.bilm(tiny.config(layers=1))
    assert muon_matrices(bilm) == []
    actual = optimizers(
        bilm, Head(6, 5), Training(optimizer="muon", negatives=None), torch.bfloat16
    )
    assert [type(each).__name__ for each in actual] == ["AdamW"]
    # 64 in both dimensions, of each gate: not of the four gates together.
    narrow = tiny.bilm(tiny.config(**{**LARGE, "dim": 63, "layers": 1, "highways": 0}))
    actual = {id(matrix.parameter) for matrix in muon_matrices(narrow)}
    assert actual == {id(narrow.encoder.projection.weight)}


def polynomial(matrix: torch.Tensor) -> torch.Tensor:
    x = matrix.double() / matrix.double().norm()
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 0.08), (torch.float32, 1e-4)])
@pytest.mark.parametrize("shape", [(64, 64), (64, 90), (64, 256), (256, 64)])
def test_it_is_the_polynomial(shape, dtype, most):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    result, expected = nearly_orthogonal(matrix[None], dtype)[0], polynomial(matrix)
    assert result.dtype == dtype
    assert float((result.double() - expected).norm() / expected.norm()) < most
