"""The size study: its points are settings that exist, and its report is that of the logs."""

from __future__ import annotations

from pathlib import Path

import pytest
import srsly
from confection import Config

from scripts import size_study
from spacy_elmo.pretrain.config import PretrainConfig


@pytest.mark.parametrize("point", size_study.POINTS)
def test_points_are_valid_configs(point: str) -> None:
    overrides = size_study.settings(point, 2_000_000)
    config = Config().from_disk(size_study.CONFIG, overrides=overrides)
    training = PretrainConfig.of(config).training
    assert training.max_tokens == 2_000_000
    # An evaluation near the end, because the last one is what counts.
    steps = 2_000_000 // training.batch_tokens
    assert training.eval_every * size_study.EVALUATIONS <= steps
    assert training.warmup_steps < steps / 4


def test_report_reads_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_study, "POINTS", {"a": {}, "b": {"model.dim": 8}, "c": {}})
    srsly.write_json(tmp_path / "rates.json", {"a": 100, "b": 200, "c": 100})
    for point, perplexities in {"a": [90.0, 80.0], "b": [70.0, 75.5], "c": [1.0]}.items():
        rows = [{"tokens": 50, "dev": None}] + [
            {"tokens": 6000 * number, "dev": {"mean": value}}
            for number, value in enumerate(perplexities, 1)
        ]
        (tmp_path / point).mkdir()
        srsly.write_jsonl(tmp_path / point / "log.jsonl", rows)
        if point != "c":
            (tmp_path / point / "model-last.safetensors").touch()
    curves = size_study.read_curves(tmp_path)
    assert [(row["point"], row["minutes"], row["perplexity"]) for row in curves] == [
        ("a", 1.0, 90.0),
        ("a", 2.0, 80.0),
        ("b", 0.5, 70.0),
        ("b", 1.0, 75.5),
    ]
    assert size_study.table(curves)[2:] == [
        "| b | `model.dim` 8 | 0.0 | 75.5 |",
        "| a |  | 0.0 | 80.0 |",
    ]
    assert size_study.chart(curves)["encoding"]["color"]["sort"] == ["b", "a"]
