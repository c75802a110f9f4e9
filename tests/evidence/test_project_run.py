"""One process at a time carries out a size, and it clears what killed ones have left."""

import subprocess
import sys

import pytest
from experiments.lock import locked
from experiments.plan import Plan
from experiments.run import run

SECTION = {"documents": None, "tasks": {}, "runs": []}


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
