"""A plan is executed once: by one process at a time, without finished runs, and after a kill."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import spacy
import srsly
from experiments import rivals
from experiments.plan import Plan
from experiments.run import run, without_absent
from spacy.tokens import Doc, DocBin

from spacy_elmo.run_lock import lock
from tests.evidence.folders import EVIDENCE

SECTION = {"documents": None, "raw_minutes": {}, "tasks": {}, "runs": []}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = {"converters": {}, "sources": {}, "also_scored": {}}
    return Plan(tmp_path / "plan.yml", {**content, "sizes": {"tiny": SECTION, "other": SECTION}})


def test_one_at_a_time_for_each_size(plan, tmp_path):
    (tmp_path / "metrics" / "tiny").mkdir(parents=True)
    with lock(tmp_path / "metrics" / "tiny"):
        with pytest.raises(BlockingIOError, match=f"process {os.getpid()} "):
            run(plan, "tiny", tmp_path, 1)
        run(plan, "other", tmp_path, 1)
    run(plan, "tiny", tmp_path, 1)


def test_a_file_of_the_rivals_is_made_by_one_process(tmp_path):
    """A process of a killed command may still be making the file."""
    path = tmp_path / "vectors"
    with lock(path), pytest.raises(BlockingIOError, match=f"process {os.getpid()} "):
        rivals.make(rivals.Resource(path, "tiny", "en", None))


@pytest.fixture
def project(tmp_path):
    """Return a folder that stands for the project, with converted corpora and a plan of two runs of NER."""
    (tmp_path / "configs").symlink_to(EVIDENCE.parent / "configs")
    (tmp_path / "projects").symlink_to(EVIDENCE.parent / "projects")
    folder = tmp_path / "evidence"
    (folder / "corpus" / "ner").mkdir(parents=True)
    for name in ("experiments", "tasks", "register.py"):
        (folder / name).symlink_to(EVIDENCE / name)
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=[name, "left"], ents=["B-PERSON", "O"]) for name in ("Ann", "Bo")]
    for part in ("train", "dev", "test"):
        DocBin(docs=docs).to_disk(folder / "corpus" / "ner" / f"ann-{part}.spacy")
    write_plan(folder, steps=2)
    return folder


def write_plan(folder, steps):
    group = {"data": ["ner/ann"], "variants": ["baseline"], "seeds": [0, 1]}
    tasks = {"ner": {"steps": steps, "minutes": [1, 1]}}
    content = {
        "converters": {}, "sources": {"ner/ann": "ann-{part}"}, "also_scored": {},
        "sizes": {"tiny": {**SECTION, "tasks": tasks, "runs": [group]}},
    }  # fmt: skip
    srsly.write_yaml(folder / "plan.yml", content)


def start(folder):
    command = [sys.executable, "-m", "experiments.run", "plan.yml", "tiny", "--processes", "1"]
    environment = {**os.environ, "PYTHONPATH": str(EVIDENCE.parent)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def lines(process):
    """Return the lines about runs that a process has printed until its end."""
    text = process.communicate(timeout=300)[0]
    assert process.returncode == 0, text
    return [line.split(":")[0] for line in text.splitlines() if line.startswith("[")]


@pytest.mark.slow
def test_done_runs_are_not_repeated_unless_their_config_has_changed(project):
    metrics = [project / f"metrics/tiny/ann/ner_baseline-{seed}.json" for seed in (0, 1)]
    both = ["[1/2] ann/ner_baseline-0", "[2/2] ann/ner_baseline-1"]
    assert lines(start(project)) == both
    written = [path.stat().st_mtime_ns for path in metrics]
    assert lines(start(project)) == []
    assert [path.stat().st_mtime_ns for path in metrics] == written
    metrics[0].unlink()
    assert lines(start(project)) == ["[1/1] ann/ner_baseline-0"]
    write_plan(project, steps=3)
    assert lines(start(project)) == both


@pytest.mark.slow
def test_after_a_kill_the_same_command_goes_on(project):
    """The process that is left finishes its run, and no other process starts this run meanwhile."""
    write_plan(project, steps=400)
    folder = project / "training/tiny/ann"
    killed = start(project)
    end = time.monotonic() + 120
    while not list(folder.glob(".*.partial/log.jsonl")):
        assert time.monotonic() < end
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.stdout.close()
    killed.wait()
    assert lines(start(project))[1] == "[2/2] ann/ner_baseline-1"
    lines(start(project))
    for seed in (0, 1):
        assert (project / f"metrics/tiny/ann/ner_baseline-{seed}.json").is_file()
    assert sorted(path.name for path in folder.iterdir()) == ["ner_baseline-0", "ner_baseline-1"]


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
        f"ner/b is skipped: there is no {tmp_path / 'ner' / 'b-dev'}",
        f"ner/c is skipped: there is no {tmp_path / 'ner' / 'd'}",
    ]
    # What was converted once needs its source no more.
    shutil.rmtree(tmp_path / "ner")
    with pytest.raises(FileNotFoundError, match="no data of the size tiny; README.md"):
        without_absent(plan, "tiny", tmp_path)
    (tmp_path / "corpus" / "ner").mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (tmp_path / "corpus" / "ner" / f"b-{part}.spacy").touch()
    left = without_absent(plan, "tiny", tmp_path)
    assert [run.name for run in left.runs("tiny")] == ["b/ner_baseline-0", "b/ner_elmo-0"]


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
        f"Runs with raw text (vectors, elmo_vectors) are skipped: there is no {pattern}\n"
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
