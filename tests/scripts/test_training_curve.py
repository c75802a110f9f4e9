"""The training curve: the evaluations of a log, as a table and a picture."""

import sys

import pytest
import srsly

from scripts import training_curve
from scripts.training_curve import read_evaluations, table


def row(tokens, mean):
    return {"tokens": tokens, "learn_rate": 0.003, "dev": mean and {"mean": mean}}


def test_the_evaluations_of_a_log_are_a_table_and_a_picture(tmp_path, monkeypatch, capsys):
    rows = [row(100, None), row(2_047_000, 224.31), row(3_000_000, None), row(4_095_000, 166.29)]
    srsly.write_jsonl(tmp_path / "log.jsonl", rows)
    evaluations = read_evaluations(tmp_path / "log.jsonl")
    assert [row["words"] for row in evaluations] == pytest.approx([2.047, 4.095])
    assert table(evaluations).splitlines()[2:] == [
        "| 2.0 | 0.003 | 224.3 |",
        "| 4.1 | 0.003 | 166.3 |",
    ]
    picture = tmp_path / "curve.png"
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "log.jsonl"), str(picture)])
    training_curve.main()
    assert "| 4.1 | 0.003 | 166.3 |" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_log_without_evaluation_is_an_error(tmp_path, monkeypatch):
    srsly.write_jsonl(tmp_path / "log.jsonl", [row(100, None)])
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "log.jsonl"), "x.png"])
    with pytest.raises(SystemExit, match="no evaluation yet"):
        training_curve.main()
