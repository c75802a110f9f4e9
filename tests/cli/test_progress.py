"""Progress bars appear only on a terminal, with a rate and the time left."""

import gzip
import os
import pty
import re
import subprocess
import sys
import termios

import pytest
from typer.testing import CliRunner

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from spacy_elmo.cli import progress as module
from spacy_elmo.cli.progress import reading_bar, stage_bar
from spacy_elmo.text.files import lines
from tests import tiny


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("the cat sleeps .\n" * 50)
    return path


@pytest.mark.parametrize("quiet", [False, True])
def test_bar_on_a_terminal(text, monkeypatch, capsys, quiet):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True)
    with reading_bar(lambda: [text], quiet=quiet):
        list(lines(text, "strict"))
    shown = capsys.readouterr().err
    if quiet:
        assert shown == ""
    else:
        assert "100%" in shown and re.search(r"850/850 \[.*B/s", shown)


def test_compressed_text_has_no_total(text, tmp_path, monkeypatch, capsys):
    packed = tmp_path / "b.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True)
    with reading_bar(lambda: [text, packed]):
        list(lines(packed, "strict"))
    shown = capsys.readouterr().err
    assert "%" not in shown and re.search(r"850B? \[.*B/s", shown)


def test_nothing_is_counted_without_a_terminal(capsys):
    def files():
        raise AssertionError("not needed")

    with reading_bar(files) as bar:
        bar.set_postfix_str("unseen")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_bar_of_stages(monkeypatch, capsys, quiet):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True)
    with stage_bar("Reading", "Writing", quiet=quiet) as end_stage:
        end_stage()
        end_stage()
    shown = capsys.readouterr().err
    if quiet:
        assert shown == ""
    else:
        assert re.search(r"Reading: +0%.*Done: 100%.*2/2 \[.* stages/s", shown, re.DOTALL)


@pytest.mark.parametrize(
    "command, sign, result",
    [
        (["evaluate", "lm.safetensors", "a.txt", "--tokenized"], b"B/s", b"Perplexity"),
        (
            ["export", "bilm-hdf5", "lm.safetensors", "theirs", "--quiet"],
            b"Done: 100%",
            b"options.json",
        ),
    ],
    ids=["bar", "quiet"],
)
def test_a_command_on_a_terminal(text, tmp_path, command, sign, result):
    """Run a command of spaCy with standard error on a pseudo-terminal."""
    vocabulary = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>"]
    weights = Weights.from_bilm(
        tiny.bilm(tiny.config()), Head(7, 5), vocabulary=vocabulary, card={}
    )
    weights.save(tmp_path / "lm.safetensors")
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "spacy", "elmo", *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=follower,
        )
    finally:
        os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 1 << 16):
            shown += chunk
    except OSError:  # the end, on Linux
        pass
    os.close(leader)
    assert done.returncode == 0, shown
    assert (sign in shown) == ("--quiet" not in command)
    assert result in done.stdout and sign not in done.stdout


def test_commands_are_grouped_and_fit_a_line():
    output = CliRunner().invoke(elmo_cli, ["--help"], terminal_width=80).output
    groups = ["Use weights", "Train a biLM", "Weights of other programs", "Analyse a biLM"]
    positions = [output.find(f"{group}") for group in groups]
    assert positions == sorted(positions) and -1 not in positions
    for group in ([], ["convert"], ["export"], ["search"], ["probe"]):
        output = CliRunner().invoke(elmo_cli, [*group, "--help"], terminal_width=80).output
        assert not [line for line in output.splitlines()[1:] if line.endswith("...")], group
