"""`prepare` and `pretrain`: what they print and write, and when they refuse to."""

import json
import os

import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli.pretrain import _format, free_cores
from spacy_elmo.files import lock
from spacy_elmo.pretraining.trainer import Progress
from tests.commands import elmo

PREPARE = ("prepare", "run.cfg", "out", "--paths.raw_text", "raw.txt")
PRETRAIN = ("pretrain", *PREPARE[1:])


def run(*arguments):
    """Return the output of a command that works."""
    code, output = elmo(*arguments)
    assert code == 0, output
    return output


def test_what_a_run_would_see_and_cost(folder):
    (folder / "raw.txt").write_text(
        "the owl sees the cat .\n" * 200 + "the owl sees the extraordinarily long-winded cat .\n" * 200
    )  # fmt: skip
    (folder / "dev.txt").write_text("the cat sees a kangaroo .\n")
    options = (
        "--model.max_characters",
        12,
        "--training.max_steps",
        "null",
        "--training.max_epochs",
        5,
    )
    output = run(*PREPARE, "--paths.dev_text", "dev.txt", *options, "--prepare.n_process", 2)
    for row in (
        # Two sentences, 200 times each: "the" (4 times), "owl", "sees", "cat" and "." (twice), and two long words.
        "training words 2,800 training sentences 400 held-out words 6 held-out sentences 1 types 9",
        "vocabulary 6, covers 57.1% of the training words and 33.3% of the held-out words",
        "cut words 14.286% of the training words (longer than 10 bytes)",
        "cut sentences 50.00% of the training sentences (longer than 7 words)",
        "passes 5.0 over the training words",
        "one pass over the corpus 0:0",
        "for 14,000 words peak memory ",
    ):
        assert row in output, row


def test_from_text_to_weights(folder):
    output = run(*PRETRAIN)
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "checkpoint", "config.cfg", "corpus", "log.jsonl", "model-best.safetensors", "model-last.safetensors",
        "report.html",
    ]  # fmt: skip
    log = (folder / "out/log.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in log] == [2, 3, 4, 6]
    weights = Weights.load("out/model-last.safetensors")
    assert weights.card["licence"] == "CC0" and weights.card["steps"] == 6
    assert weights.build_head().weight.shape == (6, 4)
    # Every column of the table shows: step, epoch, words, loss, three perplexities, speed, time left.
    table, _, closing = output.split("Left ")[1].partition("perplexity: ")
    assert len([cell for cell in table.split() if cell[0].isdigit()]) == 2 * 6 + 2 * 9
    assert "a vocabulary of 6." in closing


def test_a_run_is_continued_or_replaced_on_request(folder):
    run(*PRETRAIN)
    before = (folder / "out/model-last.safetensors").read_bytes()
    code, output = elmo(*PRETRAIN)
    assert code == 1 and "already contains a run" in output and "--resume" in output
    (folder / "out/report.html").unlink()
    output = run(*PRETRAIN, "--resume")
    assert "Resuming the run" in output and "already complete" in output
    assert (folder / "out/model-last.safetensors").read_bytes() == before
    # The last report, too, is made up for, if a kill came before it.
    assert (folder / "out/report.html").exists()
    run(*PRETRAIN, "--force")
    assert elmo(*PRETRAIN, "--force", "--resume")[0] == 1


@pytest.mark.parametrize("command", [PRETRAIN, (*PRETRAIN, "--force"), PREPARE])
def test_the_second_run_is_refused(folder, command):
    if command[0] == "pretrain":
        (folder / "out").mkdir()  # it writes to the folder, the others replace it
    with lock(folder / "out"):
        code, output = elmo(*command)
    assert code == 1
    assert "Another run is writing to " in output and f": process {os.getpid()} on " in output
    run(*command)


@pytest.mark.parametrize(
    "steps, max_minutes, left",
    [
        (0, None, "?"),
        (40, None, "0:01:30"),
        (0, 3.0, "0:02:30"),
        (40, 1.0, "0:00:30"),
        (9, None, "0:00:00"),
    ],
)
def test_time_to_the_first_limit(steps, max_minutes, left):
    """The time is estimated after 10 steps in half a minute."""
    progress = Progress(
        step=10, total_steps=steps, epoch=0.1, tokens=100, loss=1.0, learn_rate=0.1, grad_norm=1.0,
        tokens_per_second=3.3, minutes=0.5,
    )  # fmt: skip
    assert _format(progress, max_minutes).split()[-1] == left


@pytest.mark.parametrize(
    "quota, load, free",
    [("max 100000", 0.5, 8), ("200000 100000", 0.0, 2), ("max 100000", 4, 5), (None, 9, 0)],
)
def test_free_cores(tmp_path, monkeypatch, quota, load, free):
    """The load of this process itself, 1, does not count."""
    if quota:
        (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0))
    assert free_cores(tmp_path) == free


@pytest.mark.parametrize("load", [0, 99])
def test_threads_that_wait_for_each_other_are_told_before_the_first_step(folder, monkeypatch, load):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0))
    before, _, _ = run(*PRETRAIN).partition("Step ")
    assert ("OMP_NUM_THREADS=1" in before) == bool(load)
