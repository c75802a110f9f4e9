"""A command is refused if another run is writing to the same path. The message names this run."""

import os

import pytest
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli
from spacy_elmo.files import lock

CONFIG = """
[prepare]
tokenized = true

[model]
dim = 4
projection = 2
char_dim = 2
filters = [[1, 2]]
highways = 0

[training]
max_steps = 1
vocab_size = 10
negatives = 4
batch_tokens = 16
"""


@pytest.mark.parametrize(
    "command",
    [
        ["pretrain", "run.cfg", "out", "--paths.raw_text", "raw.txt"],
        ["pretrain", "run.cfg", "out", "--paths.raw_text", "raw.txt", "--resume"],
        ["pretrain", "run.cfg", "out", "--paths.raw_text", "raw.txt", "--force"],
        ["prepare", "run.cfg", "out", "--paths.raw_text", "raw.txt"],
    ],
    ids=lambda command: " ".join(command[:2] + command[-1:]),
)
def test_the_second_run_is_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    if command[0] == "pretrain":
        out.mkdir()  # it writes to the folder, the others replace it
    (tmp_path / "run.cfg").write_text(CONFIG)
    (tmp_path / "raw.txt").write_text("the cat sees the dog .\n" * 300)
    with lock(out):
        result = CliRunner().invoke(elmo_cli, command)
        assert result.exit_code == 1
        message = f"Another run is writing to {out}: process {os.getpid()} on "
        assert message in result.output.replace("\n", " ")
    result = CliRunner().invoke(elmo_cli, command)
    assert result.exit_code == 0, result.output
