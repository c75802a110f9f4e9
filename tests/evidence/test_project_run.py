"""One process at a time carries out a size, and it clears what killed ones have left."""

import shutil
import subprocess
import sys

import pytest
from experiments.lock import locked
from experiments.plan import Plan
from experiments.run import run, without_absent

SECTION = {"documents": None, "raw_minutes": {}, "tasks": {}, "runs": []}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = {"converters": {}, "sources": {}, "also_scored": {}}
    return Plan(tmp_path / "plan.yml", {**content, "sizes": {"tiny": SECTION, "other": SECTION}})


def test_one_at_a_time_for_each_size(plan, tmp_path):
    with locked(tmp_path / "metrics" / "tiny" / ".lock"):
        with pytest.raises(OSError, match="another `run` of this size is at work"):
            run(plan, "tiny", tmp_path, 1)
        run(plan, "other", tmp_path, 1)
    run(plan, "tiny", tmp_path, 1)


def test_runs_without_data_are_passed_over_with_a_line_for_each_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["ner/a", "ner/b", "ner/c"]
    group = {"data": names, "variants": ["baseline", "elmo"], "seeds": [0]}
    tasks = {"ner": {"steps": 1, "minutes": [1, 1]}}
    content = {
        "converters": {}, "sources": {**{name: name + "-{part}" for name in names}, "ner/d": "ner/d"},
        "also_scored": {"ner/c": ["ner/d"]}, "sizes": {"tiny": {**SECTION, "tasks": tasks, "runs": [group]}},
    }  # fmt: skip
    plan = Plan(tmp_path / "plan.yml", content)
    (tmp_path / "ner").mkdir()
    for name in ("a-train", "a-dev", "a-test", "b-train", "b-test", "c-train", "c-dev", "c-test"):
        (tmp_path / "ner" / name).touch()
    left = without_absent(plan, "tiny", tmp_path)
    assert [run.name for run in left.runs("tiny")] == ["a/ner_baseline-0", "a/ner_elmo-0"]
    assert capsys.readouterr().out.splitlines() == [
        f"ner/b is passed over: no {tmp_path / 'ner' / 'b-dev'}",
        f"ner/c is passed over: no {tmp_path / 'ner' / 'd'}",
    ]
    # What was converted once needs its source no more.
    shutil.rmtree(tmp_path / "ner")
    with pytest.raises(FileNotFoundError, match="nothing that size tiny reads; README.md"):
        without_absent(plan, "tiny", tmp_path)
    (tmp_path / "corpus" / "ner").mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (tmp_path / "corpus" / "ner" / f"b-{part}.spacy").touch()
    left = without_absent(plan, "tiny", tmp_path)
    assert [run.name for run in left.runs("tiny")] == ["b/ner_baseline-0", "b/ner_elmo-0"]


def test_what_killed_processes_left_is_cleared(plan, tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for folder in ("corpus/ner", "rivals/tiny", "training/tiny/a"):
        left = tmp_path / folder / f".a.{ended.pid}.partial"
        left.mkdir(parents=True)
        (left / "half").touch()
        (tmp_path / folder / "whole").touch()
    run(plan, "tiny", tmp_path, 1)
    assert not list(tmp_path.rglob("*.partial")) and len(list(tmp_path.rglob("whole"))) == 3


def test_without_raw_text_its_runs_are_passed_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    group = {"data": ["ner/a"], "variants": ["elmo", "vectors", "elmo_vectors"], "seeds": [0, 1]}
    size = {**SECTION, "tasks": {"ner": {"steps": 1, "minutes": [1, 1]}}, "runs": [group]}
    content = {
        "converters": {},
        "sources": {"ner/a": "a"},
        "also_scored": {},
        "sizes": {"tiny": size},
    }
    plan = Plan(tmp_path / "plan.yml", content)
    (tmp_path / "a").touch()
    left = without_absent(plan, "tiny", tmp_path)
    assert [run.name for run in left.runs("tiny")] == ["a/ner_elmo-0", "a/ner_elmo-1"]
    pattern = tmp_path / "pretrain-en" / "train-*"
    assert capsys.readouterr().out == (
        f"What needs raw text (vectors, elmo_vectors) is passed over: no {pattern}\n"
    )
    pattern.parent.mkdir()
    text = pattern.with_name("train-00.txt")
    text.touch()
    assert len(without_absent(plan, "tiny", tmp_path).runs("tiny")) == 6
    text.unlink()
    # What was made of it once needs it no more.
    (tmp_path / "rivals" / "tiny").mkdir(parents=True)
    for name in ("raw.txt", "raw.jsonl"):
        (tmp_path / "rivals" / "tiny" / name).touch()
    assert len(without_absent(plan, "tiny", tmp_path).runs("tiny")) == 6
    assert capsys.readouterr().out == ""
