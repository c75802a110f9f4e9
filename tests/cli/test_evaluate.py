"""The commands `evaluate` and `score` agree."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from tests import tiny
from tests.commands import elmo_as_shown

VOCABULARY = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>"]
TEXT = "the cat sleeps . the cat\n\nrain  sleeps .\n"


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    card = {"language": "en", "tokenizer": "spacy.blank('en')"}
    head = Head(len(VOCABULARY), 5)
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY, card=card)
    weights.save(tmp_path / "lm.safetensors")
    weights.without_head().save(tmp_path / "bare.safetensors")
    (tmp_path / "a.txt").write_text(TEXT)
    return tmp_path


def scores(*args, stdin=None) -> list[dict]:
    code, output = elmo_as_shown("score", *args, "--json", stdin=stdin)
    assert code == 0, output
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("tokenized", [[], ["--tokenized"]])
def test_scores_add_up_to_the_perplexity(folder, tokenized):
    model, text, out = folder / "lm.safetensors", folder / "a.txt", folder / "metrics.json"
    code, output = elmo_as_shown("evaluate", model, text, "--output", out, *tokenized)
    assert code == 0, output
    metrics = json.loads(out.read_text())
    records = scores(model, text, *tokenized)
    sentences = 2 if tokenized else 3
    assert metrics["targets"] == 9 + sentences
    assert metrics["unk_share"] == pytest.approx(1 / (9 + sentences))
    for words, borders, name in (
        ("forward", "sentence_ends", "forward"),
        ("backward", "sentence_starts", "backward"),
    ):
        found = [x for record in records for x in record[words] + record[borders]]
        assert len(found) == metrics["targets"]
        assert math.exp(-np.mean(found)) == pytest.approx(metrics[name], rel=1e-4)


def test_table_of_files(folder):
    (folder / "b.txt").write_text("the cat .\n")
    (folder / "empty.txt").write_text("\n")
    out = folder / "metrics.json"
    code, output = elmo_as_shown(
        "evaluate", folder / "lm.safetensors", folder, "--by-file", "-o", out
    )
    assert code == 0, output
    metrics = json.loads(out.read_text())
    assert [f["targets"] for f in metrics["files"].values()] == [12, 4]
    rows = [line.split() for line in output.splitlines()]
    for name, found in [("a.txt", metrics["files"][str(folder / "a.txt")]), ("All", metrics)]:
        (row,) = [row for row in rows if row and row[0] == name]
        assert row[1:3] == [str(found["targets"]), f"{found['unk_share']:.1%}"]
        figures = ["mean", "forward", "backward", "mean_known", "forward_known", "backward_known"]
        assert row[3:] == [f"{found[figure]:.1f}" for figure in figures]
    assert "7 classes" in output


def test_score_shows_a_table(folder):
    code, output = elmo_as_shown("score", folder / "lm.safetensors", folder / "a.txt", "-n", "2")
    assert code == 0, output
    rows = [line.split() for line in output.splitlines() if line.strip()]
    assert rows[0] == ["Token", "Forward", "Backward", "Substitutes"]
    names = [row[0] for row in rows if row[0] != "Token" and not row[0].startswith("-")]
    assert names == [
        *["<S>", "the", "cat", "sleeps", ".", "</S>", "<S>", "the", "cat", "</S>"],
        *["<S>", "rain*", "sleeps", ".", "</S>"],
    ]
    record, _ = scores(folder / "lm.safetensors", folder / "a.txt", "-n", "2")
    assert rows[3][:3] == ["the", f"{record['forward'][0]:.2f}", f"{record['backward'][0]:.2f}"]
    assert rows[3][3:] == [word for word, _ in record["substitutes"][0]]
    assert len(rows[3][3:]) == 2


def test_the_bundled_weights_are_a_language_model():
    (record,) = scores("en_mini_v4", "-", stdin="He looked out of the window .")
    # Of 50,000 words; a model that knows nothing gives each of them -10.8 on average.
    assert -5 < sum(record["forward"]) / 7 < -2 and -5 < sum(record["backward"]) / 7 < -2


def test_score_reads_standard_input(folder):
    from_file = scores(folder / "lm.safetensors", folder / "a.txt")
    assert scores(folder / "lm.safetensors", "-", stdin="\ufeff" + TEXT) == from_file
    assert [record["tokens"] for record in from_file] == [
        ["the", "cat", "sleeps", ".", "the", "cat"],
        ["rain", "sleeps", "."],
    ]
    assert from_file[1]["unknown"] == [True, False, False]


def test_standard_input_is_utf8_in_any_locale(folder, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "latin1")
    command = [
        sys.executable,
        "-m",
        "spacy",
        "elmo",
        "score",
        folder / "lm.safetensors",
        "-",
        "--json",
    ]
    done = subprocess.run(command, input="café x\n".encode(), capture_output=True, check=True)
    assert json.loads(done.stdout)["tokens"] == ["café", "x"]
    code, output = elmo_as_shown("score", folder / "lm.safetensors", "-", stdin=b"a\n\xff\n")
    assert code == 1 and "Standard input, line 2" in output


def test_infinite_perplexity_is_written(folder):
    weights = Weights.load(folder / "lm.safetensors")
    weights.tensors["head.bias"][:] = 0
    weights.tensors["head.bias"][0] = 1e30
    weights.save(folder / "diverged.safetensors")
    out = folder / "metrics.json"
    code, output = elmo_as_shown(
        "evaluate", folder / "diverged.safetensors", folder / "a.txt", "--output", out
    )
    assert code == 0, output
    assert json.loads(out.read_text())["mean"] == math.inf


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused_first(folder):
    (folder / "read_only").mkdir(mode=0o555)
    out = folder / "read_only" / "metrics.json"
    code, output = elmo_as_shown("evaluate", folder / "lm.safetensors", folder / "a.txt", "-o", out)
    assert code == 1 and "you may not write to the folder" in " ".join(output.split())


@pytest.mark.parametrize("command", ["evaluate", "score"])
def test_errors(folder, command):
    code, output = elmo_as_shown(command, folder / "bare.safetensors", folder / "a.txt")
    assert code == 1 and "no head" in output and "model-best.safetensors" in output
    code, output = elmo_as_shown(command, folder / "none.safetensors", folder / "a.txt")
    assert code == 1 and "there is no file" in " ".join(output.split())
    code, output = elmo_as_shown(command, folder / "lm.safetensors", folder / "none.txt")
    assert code == 1 and "No text at" in output
    code, output = elmo_as_shown(
        command, folder / "lm.safetensors", folder / "a.txt", "--lang", "xyz"
    )
    assert code == 1 and "xyz" in output


def test_nothing_is_scored_for_a_folder_that_is_not_there(folder):
    out = folder / "nowhere" / "metrics.json"
    code, output = elmo_as_shown(
        "evaluate", folder / "lm.safetensors", folder / "a.txt", "--output", out
    )
    assert code == 1 and "nowhere does not exist" in " ".join(output.split())


def test_text_without_words_is_named(folder):
    (folder / "a.txt").write_text(" \n")
    code, output = elmo_as_shown("evaluate", folder / "lm.safetensors", folder / "a.txt")
    output = "".join(output.split())
    assert code == 1 and f"'{folder / 'a.txt'}'containsnosentence" in output
