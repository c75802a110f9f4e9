"""Several processes train the same model as one process."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from confection import Config
from torch import nn

from spacy_elmo.pretraining import distributed as processes
from spacy_elmo.pretraining import loss
from spacy_elmo.pretraining.checkpoint import load_checkpoint
from tests.pretraining.conftest import assert_same_weights, log_of
from tests.processes import command, start, start_together

DEADLINE = 120


@pytest.fixture
def arguments(make_run_config, tmp_path):
    """Return the arguments of a run in `out` with these settings."""

    def arguments(out: str, **training) -> list[str]:
        config = make_run_config(**{"precision": "float32", "log_every": 1, **training})
        file = tmp_path / f"{out}.cfg"
        Config(config.model_dump()).to_disk(file)
        return ["pretrain", str(file), str(tmp_path / out)]

    return arguments


def finish(*processes, code: int = 0) -> None:
    for process in processes:
        process.join(DEADLINE)
    assert [process.exitcode for process in processes] == [code] * len(processes)


def assert_same_losses(left: Path, right: Path) -> None:
    mine, theirs = log_of(left), log_of(right)
    assert [row["tokens"] for row in mine] == [row["tokens"] for row in theirs]
    for key in ("loss", "grad_norm"):
        expected = [row[key] for row in theirs]
        assert [row[key] for row in mine] == pytest.approx(expected, rel=1e-5), key
    assert mine[-1]["dev"]["mean"] == pytest.approx(theirs[-1]["dev"]["mean"], rel=1e-5)


@pytest.mark.slow
def test_torchrun_equals_one_process(arguments, tmp_path):
    args = arguments("two")
    actual = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         "-m", "spacy", "elmo", *args],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert actual.returncode == 0, actual.stderr
    assert actual.stdout.count("Words/s") == actual.stdout.count("Weights:") == 1
    finish(start(command, arguments("one"), tmp_path / "one.txt"))
    assert len(log_of(tmp_path / "two")) == 20
    assert_same_losses(tmp_path / "two", tmp_path / "one")


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_tokens": 1},  # one sentence: the second process has nothing to read
        {"negatives": None, "batch_tokens": 20},
        {"optimizer": "adagrad", "learn_rate": 0.2},
    ],
    ids=str,
)
def test_two_processes_equal_one(arguments, tmp_path, settings):
    pair = start_together(command, arguments("two", **settings), tmp_path / "two.txt")
    finish(*pair)
    finish(start(command, arguments("one", **settings), tmp_path / "one.txt"))
    assert_same_losses(tmp_path / "two", tmp_path / "one")
    assert (tmp_path / "two.txt.1").read_text() == ""


def test_a_signal_to_one_stops_all_and_they_resume(arguments, tmp_path):
    endless = {"max_steps": 1_000_000, "cooldown": 0.0, "log_every": 10}
    args = [*arguments("broken", **endless), "--resume"]
    pair = start_together(command, args, tmp_path / "broken.txt")
    newest = tmp_path / "broken" / "checkpoint" / "current.pt"
    while not newest.exists():
        assert all(process.is_alive() for process in pair)
    os.kill(pair[1].pid, signal.SIGTERM)
    finish(*pair, code=143)
    step = load_checkpoint(tmp_path / "broken")["step"]
    message = " ".join((tmp_path / "broken.txt.0").read_text().split())
    assert f"step {step}" in message and "another process" in message
    end = ["--training.max_steps", str(step + 10)]
    finish(*start_together(command, [*args, *end], tmp_path / "broken.txt"))
    unbroken = [*arguments("unbroken", **endless), *end]
    finish(*start_together(command, unbroken, tmp_path / "unbroken.txt"))
    assert_same_weights(tmp_path / "broken", tmp_path / "unbroken")


def test_bad_input_is_one_message(arguments, tmp_path):
    args = [*arguments("run"), "--paths.raw_text", "nowhere"]
    finish(*start_together(command, args, tmp_path / "said"), code=1)
    assert "No text at 'nowhere'" in (tmp_path / "said.0").read_text()
    assert (tmp_path / "said.1").read_text() == ""


def with_a_loss_that_is_not_finite(args: list[str], output: Path) -> None:
    """Run the command; the loss of the second process is not finite in its seventh step."""
    losses, right = [], loss.loss_sum

    def loss_sum(*arguments):
        losses.append(right(*arguments))
        wrong = len(losses) == 7 and os.environ["RANK"] == "1"
        return losses[-1] * (math.nan if wrong else 1)

    loss.loss_sum = loss_sum
    command(args, output)


def test_a_loss_that_is_not_finite_in_one_stops_all(arguments, tmp_path):
    pair = start_together(with_a_loss_that_is_not_finite, arguments("run"), tmp_path / "said")
    finish(*pair, code=1)
    assert "step 7 the loss is nan" in (tmp_path / "said.0").read_text()
    assert (tmp_path / "said.1").read_text() == ""
    assert load_checkpoint(tmp_path / "run")["step"] == 5


def sum_gradients() -> None:
    """Sum, in each of two processes, a gradient that only the first has, and gradients of rows of a table."""
    with processes.join(torch.device("cpu")) as two:
        dense = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4))]
        tables = [nn.Parameter(torch.zeros(6, 2)), nn.Parameter(torch.zeros(6, 1))]
        dense[0].grad = torch.full((2, 3), 10.0**two.rank)
        if two.first:
            dense[1].grad = torch.ones(4)
        named = torch.tensor([[1, 5, 1], [3, 5, 3]][two.rank])
        for table in tables:
            values = 10.0**two.rank * torch.ones(3, table.shape[1])
            table.grad = torch.sparse_coo_tensor(
                named[None], values, table.shape, check_invariants=True
            )
        two.sum_gradients(dense, tables)
        assert torch.equal(dense[0].grad, torch.full((2, 3), 11.0))
        assert torch.equal(dense[1].grad, torch.ones(4))
        for table in tables:
            assert table.grad.is_sparse and table.grad.coalesce().indices().tolist() == [[1, 3, 5]]
            expected = torch.tensor([0.0, 2, 0, 20, 0, 11])[:, None].expand_as(table)
            assert torch.equal(table.grad.to_dense(), expected)
        assert two.sum(two.rank + 0.5) == 2.0
        assert two.broadcast(f"said by {two.rank}") == "said by 0"


def test_sums_of_dense_and_sparse_gradients():
    finish(*start_together(sum_gradients))
