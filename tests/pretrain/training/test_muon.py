"""Muon takes the steps of its formula, on each matrix inside a stacked parameter."""

import numpy as np
import pytest
import torch
from torch import nn

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretrain import config as config_module
from spacy_elmo.pretrain.config import PretrainConfig, Training
from spacy_elmo.pretrain.training.loop import pretrain
from spacy_elmo.pretrain.training.muon import muon, muon_matrices
from spacy_elmo.pretrain.training.optimization import optimizers, take_step
from tests import tiny

LARGE = {"layers": 2, "dim": 72, "projection": 64, "filters": [[1, 32], [2, 40]], "highways": 1}

pytestmark = pytest.mark.skipif(
    not hasattr(torch.optim, "Muon"), reason="Muon requires torch 2.9 or later"
)


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


def test_steps_are_those_of_the_formula(bilm):
    rate, decay = 0.01, 0.1
    expected = {n: m.detach().double().numpy() for n, m in matrices(bilm.state_dict()).items()}
    buffers = dict.fromkeys(expected, 0.0)
    start = {n: m.copy() for n, m in expected.items()}
    optimizer = muon(muon_matrices(bilm), rate, decay)
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
        # Newton-Schulz runs in bfloat16, which has three digits.
        assert np.abs(change - right).max() < 0.02 * np.abs(right).max(), name


def test_steps_equal_those_of_torch_on_separate_matrices(bilm):
    alone = {n: nn.Parameter(m.clone()) for n, m in matrices(bilm.state_dict()).items()}
    theirs = torch.optim.Muon(
        alone.values(), lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    ours = muon(muon_matrices(bilm), 0.01, 0.1)
    for step in range(3):
        gradients(bilm, step)
        given = matrices({name: p.grad for name, p in bilm.named_parameters()})
        for name, parameter in alone.items():
            parameter.grad = given[name].clone()
        ours.step()
        theirs.step()
    for name, matrix in matrices(bilm.state_dict()).items():
        torch.testing.assert_close(matrix, alone[name].detach(), rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("negatives", [4, None])
def test_every_number_of_every_parameter_has_one_optimizer(bilm, negatives):
    """AdamW has the rest, and one step changes every number."""
    head = Head(6, 64)
    settings = Training(optimizer="muon", negatives=negatives, learn_rate=0.01)
    found = optimizers(bilm, head, settings)
    kinds = ["Muon", "AdamW"] + ["SparseAdam"] * bool(negatives)
    assert [type(each).__name__ for each in found] == kinds
    held = [p for each in found for group in each.param_groups for p in group["params"]]
    parameters = [*bilm.parameters(), *head.parameters()]
    places = [p.data_ptr() for p in parameters]
    assert sum(p.numel() for p in held) == sum(p.numel() for p in parameters)
    assert {id(p) for p in held} >= {id(p) for p in head.parameters()}
    by_adamw = {id(p) for group in found[1].param_groups for p in group["params"]}
    names = {name for name, p in bilm.named_parameters() if id(p) in by_adamw}
    assert all("bias" in name or "characters" in name or "filters" in name for name in names)
    start = [p.detach().clone() for p in parameters]
    gradients(bilm, 0)
    for parameter in head.parameters():
        parameter.grad = torch.ones_like(parameter)
        if negatives:
            parameter.grad = parameter.grad.to_sparse(1)
    take_step(found, 0.01)
    for parameter, before in zip(parameters, start, strict=True):
        # A very small change may round to none.
        assert (parameter.detach() != before).float().mean() > 0.99
    assert all(p.grad is None for p in parameters)
    assert [p.data_ptr() for p in parameters] == places


def test_small_matrices_are_left_to_adamw():
    bilm = tiny.bilm(tiny.config(layers=1))
    assert muon_matrices(bilm) == []
    found = optimizers(bilm, Head(6, 5), Training(optimizer="muon", negatives=None))
    assert [type(each).__name__ for each in found] == ["AdamW"]
    # 64 in both dimensions, of each gate: not of the four gates together.
    narrow = tiny.bilm(tiny.config(**{**LARGE, "dim": 63, "layers": 1, "highways": 0}))
    found = {id(matrix.parameter) for matrix in muon_matrices(narrow)}
    assert found == {id(narrow.encoder.projection.weight)}


def test_the_rate_of_the_schedule_is_that_of_all(bilm):
    found = optimizers(bilm, Head(6, 64), Training(optimizer="muon", negatives=None))
    before = matrices({n: p.detach().clone() for n, p in bilm.named_parameters()})
    gradients(bilm, 0)
    take_step(found, 0.0)
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
    unbroken = list(pretrain(make_run(**settings), corpus, tmp_path / "unbroken"))
    for resume, rows in ((False, 1), (True, 2)):
        run = pretrain(make_run(**settings), corpus, tmp_path / "broken", resume=resume)
        for _ in range(rows):
            next(run)
        run.close()
    rest = list(pretrain(make_run(**settings), corpus, tmp_path / "broken", resume=True))
    assert [row.loss for row in rest] == [row.loss for row in unbroken[-len(rest) :]]
    for name in ("model-last.safetensors", "model-best.safetensors"):
        left, right = (
            Weights.load(tmp_path / out / name).tensors for out in ("unbroken", "broken")
        )
        assert left.keys() == right.keys()
        assert all(torch.equal(left[key], right[key]) for key in left)


def test_it_learns(corpus, make_run, tmp_path):
    config = make_run(max_steps=60, eval_every=60, batch_tokens=128, learn_rate=0.01)
    assert list(pretrain(config, corpus, tmp_path / "run"))[-1].dev.mean < 7


def test_an_older_torch_is_a_clear_error(monkeypatch, bilm):
    monkeypatch.delattr(torch.optim, "Muon")
    assert config_module.torch is torch
    with pytest.raises(ValueError, match=r"\[training\] optimizer = 'muon': requires torch 2.9 or"):
        PretrainConfig.of({"training": {"max_steps": 1, "optimizer": "muon"}})
    assert PretrainConfig.of({"training": {"max_steps": 1}}).training.optimizer == "adamw"
    with pytest.raises(ValueError, match="Muon requires torch 2.9 or later, and this is torch"):
        muon([], 0.1, 0.0)
