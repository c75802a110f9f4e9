"""A run that is stopped or killed at any moment, and then resumed, ends with the result of an uninterrupted run."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from confection import Config

from spacy_elmo.pretraining.checkpoint import load_checkpoint
from tests.pretraining.conftest import assert_same_run
from tests.processes import command, start

DEADLINE = 120


@pytest.fixture
def pretrain(make_run_config, tmp_path):
    """Start the command, with a constant learning rate, so that the end of a run can be chosen while it runs."""
    config = make_run_config(
        max_steps=1_000_000, cooldown=0.0, dropout=0.1, log_every=3, eval_every=20, save_every=4
    )
    Config(config.model_dump()).to_disk(tmp_path / "run.cfg")

    def pretrain(out: Path, *options: str):
        args = ["pretrain", str(tmp_path / "run.cfg"), str(out), "--resume", *options]
        return start(command, args, tmp_path / f"{out.name}.txt")

    return pretrain


def step(out: Path) -> int:
    state = load_checkpoint(out)
    return state["step"] if state else 0


def wait_for_checkpoint(out: Path, process, number: int = 1) -> None:
    """Return once `number` checkpoints have been written from now on."""
    newest, seen, deadline = out / "checkpoint" / "current.pt", 0, time.monotonic() + DEADLINE
    before = newest.stat().st_ino if newest.exists() else None
    while seen < number:
        assert process.is_alive() and time.monotonic() < deadline
        now = newest.stat().st_ino if newest.exists() else None
        seen, before = seen + (now != before), now
        time.sleep(0.001)


def finish(process) -> None:
    process.join(DEADLINE)
    assert process.exitcode == 0


@pytest.mark.slow
def test_kills(pretrain, tmp_path):
    """SIGKILL at random moments: during preparation, training steps, evaluations and writes."""
    draw, broken = random.Random(0), tmp_path / "broken"
    steps = []
    for _ in range(12):
        process = pretrain(broken)
        wait_for_checkpoint(broken, process, draw.randrange(3))
        time.sleep(draw.uniform(0, 0.1))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        steps.append(step(broken))
    assert steps == sorted(steps) and len(set(steps)) > 5
    end = ["--training.max_steps", str(steps[-1] + 10)]
    finish(pretrain(broken, *end))
    finish(pretrain(tmp_path / "unbroken", *end))
    assert_same_run(broken, tmp_path / "unbroken")


def test_signals_save_a_checkpoint_and_say_so(pretrain, tmp_path):
    out = tmp_path / "broken"
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = pretrain(out)
        wait_for_checkpoint(out, process)
        os.kill(process.pid, number)
        process.join(DEADLINE)
        message = " ".join((tmp_path / "broken.txt").read_text().split())
        assert process.exitcode == code, message
        assert f"step {step(out):,}" in message and number.name in message and "--resume" in message
        assert not (out / "model-last.safetensors").exists()
    end = ["--training.max_steps", str(step(out) + 10)]
    finish(pretrain(out, *end))
    finish(pretrain(tmp_path / "unbroken", *end))
    assert_same_run(out, tmp_path / "unbroken")
