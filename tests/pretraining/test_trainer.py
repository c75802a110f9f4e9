"""Training learns, and can be stopped at any moment."""

import dataclasses
import json
import math
import threading

import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining import loss, trainer
from spacy_elmo.pretraining.checkpoint import load_checkpoint, save_checkpoint
from spacy_elmo.pretraining.trainer import PretrainingStopped, train
from tests.pretraining.conftest import assert_same_run, assert_same_weights, log_of
from tests.threads import torch_threads


def test_learns_the_grammar(corpus, make_config, tmp_path):
    """Each noun determines its verb, which a trained model predicts, as it does the end of a sentence."""
    config = make_config(max_steps=300, learn_rate=0.03, eval_every=100, batch_tokens=128)
    rows = list(train(config, corpus, tmp_path / "run"))
    dev = [row.dev for row in rows if row.dev is not None]
    # A sentence has 6 2/3 targets on average, and hides one of 6 nouns and one of 3 ends: no model can be below this.
    entropy = (math.log(6) + math.log(3)) / (20 / 3)
    assert 0.95 * math.exp(entropy) < dev[-1].forward < 1.3 * math.exp(entropy)
    assert dev[-1].vocab_size == len(corpus.vocabulary(20))
    assert rows[-1].step == rows[-1].total_steps == 300
    assert [row["step"] for row in log_of(tmp_path / "run")] == [row.step for row in rows]
    best = Weights.load(tmp_path / "run/model-best.safetensors")
    assert best.card["perplexity"]["mean"] == min(d.mean for d in dev)
    assert best.vocabulary == corpus.vocabulary(20)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dropout": 0.2},
        {"negatives": None},
        {"optimizer": "adagrad"},
        {"optimizer": "muon", "negatives": None, "dropout": 0.1},
    ],
    ids=str,
)
def test_a_stopped_run_goes_on_as_if_it_had_not(corpus, make_config, tmp_path, settings):
    config = make_config(**settings)
    if config.training.optimizer == "muon":
        # Muon updates matrices of at least 64 x 64.
        large = {**config.model, "dim": 72, "projection": 64, "filters": [[1, 32], [2, 40]]}
        config = config.model_copy(update={"model": large})
    list(train(config, corpus, tmp_path / "unbroken"))
    # Stopped between two checkpoints, in the middle of a log interval, twice.
    for resume, rows in ((False, 1), (True, 2)):
        run = train(config, corpus, tmp_path / "broken", resume=resume)
        for _ in range(rows):
            next(run)
        run.close()
    list(train(config, corpus, tmp_path / "broken", resume=True))
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


@pytest.mark.parametrize(
    "name, remedy", [("threads", "OMP_NUM_THREADS"), ("processes", "nproc-per-node")]
)
def test_another_number_of_threads_or_processes_warns(corpus, make_config, tmp_path, name, remedy):
    next(train(make_config(), corpus, tmp_path / "run"))
    save_checkpoint({**load_checkpoint(tmp_path / "run"), name: 99}, tmp_path / "run")
    with pytest.warns(UserWarning, match=f"99 {name} .*{remedy}"):
        next(train(make_config(), corpus, tmp_path / "run", resume=True))


@pytest.mark.parametrize("name, factor", [("loss_sum", math.nan), ("clip_gradients", math.inf)])
def test_a_loss_or_gradient_that_is_not_finite_stops_and_keeps_the_checkpoint(
    corpus, make_config, tmp_path, monkeypatch, name, factor
):
    run = train(make_config(), corpus, tmp_path / "run")
    next(run)
    right = getattr(loss, name)
    monkeypatch.setattr(loss, name, lambda *args: right(*args) * factor)
    with pytest.raises(ValueError, match=f"step 6 .*{factor}.*--training.learn_rate 0.001"):
        list(run)
    assert load_checkpoint(tmp_path / "run")["step"] == 5


@pytest.mark.parametrize(
    "limit, expected",
    [
        ({"max_tokens": 300}, "tokens"),
        ({"max_epochs": 1}, "epoch"),
        ({"max_minutes": 1e-9}, "minutes"),
    ],
)
def test_limits(corpus, make_config, tmp_path, limit, expected):
    row = list(train(make_config(**{"max_steps": 1000, **limit}), corpus, tmp_path / "run"))[-1]
    assert row.step < 1000
    value = {"tokens": row.tokens, "epoch": row.epoch, "minutes": row.minutes}[expected]
    assert value >= next(iter(limit.values()))


class Stop(Exception):
    """Simulated kill."""


def stopping(write, when):
    """Return a function that writes, or raises `Stop` for certain arguments."""

    def stopped(*args, **kwargs):
        if when(*args):
            raise Stop
        return write(*args, **kwargs)

    return stopped


@pytest.mark.parametrize("moment", ["log", "best", "checkpoint", "last"])
def test_a_stop_between_any_two_writes_loses_nothing(
    corpus, make_config, tmp_path, monkeypatch, moment
):
    """Files that were not yet written when the run was stopped at its last step are written when it is resumed."""
    list(train(make_config(), corpus, tmp_path / "unbroken"))
    with monkeypatch.context() as patch:
        if moment == "log":
            write = stopping(
                json.dumps, lambda row: isinstance(row, dict) and row.get("step") == 20
            )
            patch.setattr(trainer.json, "dumps", write)
        elif moment == "checkpoint":
            write = stopping(save_checkpoint, lambda state, _: state["step"] == 20)
            patch.setattr(trainer, "save_checkpoint", write)
        else:
            write = stopping(
                Weights.save,
                lambda weights, path: (
                    weights.card["steps"] == 20 and path.stem == f"model-{moment}"
                ),
            )
            patch.setattr(Weights, "save", write)
        with pytest.raises(Stop):
            list(train(make_config(), corpus, tmp_path / "broken"))
    list(train(make_config(), corpus, tmp_path / "broken", resume=True))
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


def test_gradients_are_the_same_with_several_threads(corpus, make_config, tmp_path):
    """The gradients of repeated words must be added in a fixed order, not in that in which the threads finish."""
    config = make_config(max_steps=1, batch_tokens=2000)
    with torch_threads(2):
        for run in range(4):
            list(train(config, corpus, tmp_path / str(run)))
    for run in range(1, 4):
        assert_same_weights(tmp_path / "0", tmp_path / str(run))


@pytest.mark.parametrize(
    "change",
    [
        lambda corpus: {"types": [*corpus.types[:3], *reversed(corpus.types[3:])]},
        lambda corpus: {"dev": dataclasses.replace(corpus.dev, ids=corpus.dev.ids[::-1])},
    ],
    ids=["words", "held-out text"],
)
def test_another_corpus_is_refused(corpus, make_config, tmp_path, change):
    next(train(make_config(), corpus, tmp_path / "run"))
    other = dataclasses.replace(corpus, **change(corpus))
    with pytest.raises(ValueError, match="belongs to another corpus"):
        next(train(make_config(), other, tmp_path / "run", resume=True))


def test_a_damaged_checkpoint_is_an_error_and_not_a_new_start(corpus, make_config, tmp_path):
    next(train(make_config(), corpus, tmp_path / "run"))
    path = tmp_path / "run/checkpoint/current.pt"
    whole = path.read_bytes()
    for damaged in (b"", b"PK not really", whole[:-20], whole.replace(b"bilm", b"bilM")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"current\.pt cannot be read"):
            load_checkpoint(tmp_path / "run")


def test_the_callers_torch_is_left_as_it_was(corpus, make_config, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    list(train(make_config(max_steps=3), corpus, tmp_path / "run"))
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_damaged_log_is_cut_at_the_damage(corpus, make_config, tmp_path):
    rows = list(train(make_config(), corpus, tmp_path / "run"))
    log = tmp_path / "run/log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text(lines[0] + "\0\0\0")
    list(train(make_config(max_steps=25), corpus, tmp_path / "run", resume=True))
    assert [row["step"] for row in log_of(tmp_path / "run")] == [rows[0].step, 25]


def test_patience(corpus, make_config, tmp_path, monkeypatch):
    """The run ends after that many steps without an improvement, and can be resumed with a higher patience."""
    figures = iter([9.0, 8.0, 8.5, 8.0, 7.0, 7.5, 7.5, 7.5])

    def perplexity(*args):
        return dataclasses.replace(right(*args), mean=next(figures))

    right = trainer.perplexity
    monkeypatch.setattr(trainer, "perplexity", perplexity)
    config = make_config(max_steps=1000, eval_every=2, log_every=2, save_every=2, patience=4)
    rows = list(train(config, corpus, tmp_path / "run"))
    assert [(row.step, row.best) for row in rows] == [(2, True), (4, True), (6, False), (8, False)]
    assert (tmp_path / "run/model-last.safetensors").exists()
    assert list(train(config, corpus, tmp_path / "run", resume=True)) == []
    longer = make_config(max_steps=1000, eval_every=2, log_every=2, save_every=2, patience=6)
    rows = list(train(longer, corpus, tmp_path / "run", resume=True))
    assert [(row.step, row.best) for row in rows] == [
        (10, True), (12, False), (14, False), (16, False),
    ]  # fmt: skip


@pytest.mark.parametrize("fast", ["bfloat16", "float32"])
def test_auto_is_what_the_machine_is_fast_in_and_stays(
    corpus, make_config, tmp_path, monkeypatch, fast
):
    def on_a_machine_for(name: str) -> None:
        known = {"avx512_bf16": name == "bfloat16"}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)

    on_a_machine_for(fast)
    list(train(make_config(precision=fast), corpus, tmp_path / "said"))
    next(train(make_config(), corpus, tmp_path / "auto"))
    on_a_machine_for("float32" if fast == "bfloat16" else "bfloat16")
    list(train(make_config(), corpus, tmp_path / "auto", resume=True))
    card = Weights.load_card(tmp_path / "said" / "model-last.safetensors")
    assert card["training_precision"] == fast
    assert_same_weights(tmp_path / "auto", tmp_path / "said")


def test_a_stopped_run_can_end_where_it_is(corpus, make_config, tmp_path):
    """Its weights become the final weights, with their perplexity."""
    out, stop = tmp_path / "run", threading.Event()
    run = train(make_config(max_steps=8, log_every=3), corpus, out, stop=stop)
    next(run)
    stop.set()
    with pytest.raises(PretrainingStopped, match="after step 4"):
        next(run)
    (row,) = train(make_config(max_steps=4), corpus, out, resume=True)
    last = Weights.load(out / "model-last.safetensors")
    assert (row.step, last.card["steps"]) == (4, 4)
    assert row.best and last.card["perplexity"]["mean"] == row.dev.mean
    assert (out / "model-best.safetensors").exists()
    assert list(train(make_config(max_steps=4), corpus, out, resume=True)) == []
