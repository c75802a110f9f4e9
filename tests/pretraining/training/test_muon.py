"""Muon takes the steps of its formula, on each matrix inside a stacked parameter."""

import copy

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.config import PretrainConfig, Training
from spacy_elmo.pretraining.training.optimizers import Muon, muon_matrices, optimizers, take_step
from spacy_elmo.pretraining.training.trainer import train
from tests import tiny
from tests.pretraining.conftest import assert_same_run

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


def numpy_step(matrix, buffer, gradient, rate, decay):
    """Compute a step in float64: momentum, five Newton-Schulz iterations, decoupled weight decay."""
    buffer = 0.95 * buffer + 0.05 * gradient
    x = 0.95 * buffer + 0.05 * gradient
    x = x / np.linalg.norm(x)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    matrix = (1 - rate * decay) * matrix - 0.2 * np.sqrt(max(matrix.shape)) * rate * x
    return matrix, buffer


@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 0.02), (torch.float32, 1e-4)])
def test_steps_are_those_of_the_formula(bilm, dtype, most):
    rate, decay = 0.01, 0.1
    expected = {n: m.detach().double().numpy() for n, m in matrices(bilm.state_dict()).items()}
    buffers = dict.fromkeys(expected, 0.0)
    start = {n: m.copy() for n, m in expected.items()}
    optimizer = Muon(muon_matrices(bilm), rate, decay, dtype)
    for step in range(2):
        gradients(bilm, step)
        given = {name: p.grad for name, p in bilm.named_parameters()}
        for name, gradient in matrices(given).items():
            expected[name], buffers[name] = numpy_step(
                expected[name], buffers[name], gradient.double().numpy(), rate, decay
            )
        optimizer.step()
    for name, matrix in matrices(bilm.state_dict()).items():
        change, right = matrix.double().numpy() - start[name], expected[name] - start[name]
        assert np.abs(change - right).max() < most * np.abs(right).max(), name


def test_a_run_keeps_its_number_type_on_another_processor(bilm):
    other = copy.deepcopy(bilm)
    begun = Muon(muon_matrices(bilm), 0.01, 0.1, torch.float32)
    resumed = Muon(muon_matrices(other), 0.01, 0.1, torch.bfloat16)
    gradients(bilm, 0)
    begun.step()
    other.load_state_dict(bilm.state_dict())
    resumed.load_state_dict(copy.deepcopy(begun.state_dict()))
    for network, optimizer in ((bilm, begun), (other, resumed)):
        gradients(network, 1)
        optimizer.step()
    for name, value in bilm.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


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


def test_the_rate_of_the_schedule_is_that_of_all(bilm):
    actual = optimizers(
        bilm, Head(6, 64), Training(optimizer="muon", negatives=None), torch.bfloat16
    )
    before = matrices({n: p.detach().clone() for n, p in bilm.named_parameters()})
    gradients(bilm, 0)
    take_step(actual, 0.0)
    after = matrices(bilm.state_dict())
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.fixture
def make_run(make_config):
    def make(**training) -> PretrainConfig:
        settings = {"optimizer": "muon", "weight_decay": 0.01, **training}
        model = {**make_config().model, "dim": 72, "projection": 64, "filters": [[1, 32], [2, 40]]}
        return make_config(**settings).model_copy(update={"model": model})

    return make


@pytest.mark.parametrize("settings", [{}, {"negatives": None, "dropout": 0.1}], ids=str)
def test_a_stopped_run_goes_on_as_if_it_had_not(corpus, make_run, tmp_path, settings):
    list(train(make_run(**settings), corpus, tmp_path / "unbroken"))
    for resume, rows in ((False, 1), (True, 2)):
        run = train(make_run(**settings), corpus, tmp_path / "broken", resume=resume)
        for _ in range(rows):
            next(run)
        run.close()
    list(train(make_run(**settings), corpus, tmp_path / "broken", resume=True))
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


def test_it_learns(corpus, make_run, tmp_path):
    config = make_run(max_steps=60, eval_every=60, batch_tokens=128, learn_rate=0.01)
    assert list(train(config, corpus, tmp_path / "run"))[-1].dev.mean < 7
