"""Training: what it learns, and that it can be stopped at any moment."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from confection import Config
from torch import nn

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretrain import checkpoint, loop
from spacy_elmo.pretrain.config import Training
from spacy_elmo.pretrain.loop import clip_gradients, learn_rate, pretrain


def tensors(path) -> dict[str, torch.Tensor]:
    return Weights.read(path).tensors


def equal(left, right) -> bool:
    return left.keys() == right.keys() and all(
        torch.equal(left[name], right[name]) for name in left
    )


def test_learns_the_grammar(corpus, make_config, tmp_path):
    """Every noun has its verb: a model that has learned predicts it, and says how long sentences are."""
    config = make_config(max_steps=300, learn_rate=0.03, eval_every=100, batch_tokens=128)
    rows = list(pretrain(config, corpus, tmp_path / "run"))
    dev = [row.dev for row in rows if row.dev is not None]
    # A sentence has 6 2/3 targets on average, and hides one of 6 nouns and one of 3 ends: no model can be below this.
    entropy = (math.log(6) + math.log(3)) / (20 / 3)
    assert 0.95 * math.exp(entropy) < dev[-1].forward < 1.3 * math.exp(entropy)
    assert dev[-1].vocab_size == len(corpus.vocabulary(20))
    assert rows[-1].step == rows[-1].steps == 300
    written = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in written] == [row.step for row in rows]
    best = Weights.read(tmp_path / "run/model-best.safetensors")
    assert best.card["perplexity"]["mean"] == min(d.mean for d in dev)
    assert best.vocabulary == corpus.vocabulary(20)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_stopped_run_goes_on_as_if_it_had_not(corpus, make_config, tmp_path, dropout):
    unbroken = list(pretrain(make_config(dropout=dropout), corpus, tmp_path / "unbroken"))
    # Stopped between two checkpoints, in the middle of a log interval, twice.
    for resume, rows in ((False, 1), (True, 2)):
        run = pretrain(make_config(dropout=dropout), corpus, tmp_path / "broken", resume=resume)
        for _ in range(rows):
            next(run)
        run.close()
    list(pretrain(make_config(dropout=dropout), corpus, tmp_path / "broken", resume=True))
    for name in ("model-last.safetensors", "model-best.safetensors"):
        assert equal(tensors(tmp_path / "unbroken" / name), tensors(tmp_path / "broken" / name))
    log = [json.loads(line) for line in (tmp_path / "broken/log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [row.step for row in unbroken]
    assert [row["loss"] for row in log] == [row.loss for row in unbroken]


def test_killed_and_resumed_through_the_command(text_file, make_config, tmp_path):
    """SIGKILL at an arbitrary moment; the resumed run ends with the weights of an unbroken one, bit for bit."""
    config = make_config(max_steps=300, save_every=20, log_every=10, eval_every=100)
    config = config.model_copy(
        update={"paths": config.paths.model_copy(update={"raw_text": str(text_file)})}
    )
    Config(config.model_dump()).to_disk(tmp_path / "run.cfg")

    def start(out: str, *options: str) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            "spacy",
            "elmo",
            "pretrain",
            str(tmp_path / "run.cfg"),
            str(tmp_path / out),
        ]
        return subprocess.Popen(
            [*command, *options],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )

    killed = start("broken")
    log = tmp_path / "broken" / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") >= 7):
        assert killed.poll() is None and time.monotonic() < deadline, killed.stdout.read()
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not (tmp_path / "broken" / "model-last.safetensors").exists()
    for process in (start("broken", "--resume"), start("unbroken")):
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
    for name in ("model-last.safetensors", "model-best.safetensors"):
        assert equal(tensors(tmp_path / "unbroken" / name), tensors(tmp_path / "broken" / name))


def test_a_full_disk_keeps_the_checkpoint_before(corpus, make_config, tmp_path, monkeypatch):
    run = pretrain(make_config(), corpus, tmp_path / "run")
    next(run), next(run)
    monkeypatch.setattr(
        torch, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space left"):
        list(run)
    monkeypatch.undo()
    assert checkpoint.load(tmp_path / "run/checkpoint")["step"] == 10
    list(pretrain(make_config(), corpus, tmp_path / "run", resume=True))
    list(pretrain(make_config(), corpus, tmp_path / "unbroken"))
    assert equal(
        *(tensors(tmp_path / run / "model-last.safetensors") for run in ("run", "unbroken"))
    )


def test_another_number_of_threads_warns(corpus, make_config, tmp_path, monkeypatch):
    next(pretrain(make_config(), corpus, tmp_path / "run"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    with pytest.warns(UserWarning, match="goes on with 99"):
        next(pretrain(make_config(), corpus, tmp_path / "run", resume=True))


def test_a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(
    corpus, make_config, tmp_path, monkeypatch
):
    run = pretrain(make_config(), corpus, tmp_path / "run")
    next(run)
    monkeypatch.setattr(
        loop, "sampled_loss", lambda *_: torch.tensor(float("nan"), requires_grad=True)
    )
    with pytest.raises(ValueError, match="Step 6: the loss is nan.*learn_rate"):
        list(run)
    assert checkpoint.load(tmp_path / "run/checkpoint")["step"] == 5


@pytest.mark.parametrize(
    "limit, expected",
    [
        ({"max_tokens": 300}, "tokens"),
        ({"max_epochs": 1}, "epoch"),
        ({"max_minutes": 1e-9}, "minutes"),
    ],
)
def test_limits(corpus, make_config, tmp_path, limit, expected):
    row = list(pretrain(make_config(**{"max_steps": 1000, **limit}), corpus, tmp_path / "run"))[-1]
    assert row.step < 1000
    value = {"tokens": row.tokens, "epoch": row.epoch, "minutes": row.minutes}[expected]
    assert value >= next(iter(limit.values()))


def test_learn_rate():
    settings = Training(max_steps=1, learn_rate=1.0, warmup_steps=4)
    assert [learn_rate(settings, step, 104) for step in (0, 1, 3)] == [0.25, 0.5, 1.0]
    assert learn_rate(settings, 4, 104) == pytest.approx(1.0)
    assert learn_rate(settings, 54, 104) == pytest.approx(0.505)
    assert learn_rate(settings, 104, 104) == pytest.approx(0.01)
    assert learn_rate(settings, 1000, 0) == 1.0


@pytest.mark.parametrize("limit", [0.1, 1e6])
def test_clipping_equals_that_of_torch(limit):
    """Sparse gradients, rows named twice among them, count as the dense ones that they stand for."""
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
