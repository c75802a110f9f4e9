"""A run of the plan from a tiny corpus to its file of scores."""

import dataclasses
import json
import os
import shutil

import pytest
import spacy
from experiments import training
from experiments.plan import Data, Run
from experiments.training import carry_out, done
from spacy.tokens import Doc, DocBin

from spacy_elmo.run_lock import lock
from tests.evidence.folders import EVIDENCE

ANN = Data("ner", "ann")
OTHER = Data("ner", "other")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Use a folder that stands for the project, with its configs."""
    configs = tmp_path / "configs"
    configs.symlink_to(EVIDENCE.parent / "configs")
    folder = tmp_path / "evidence"
    (folder / "corpus" / "ner").mkdir(parents=True)
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(vocab, words=[name, "left"], ents=["B-PERSON", "O"]) for name in ("Ann", "Bo", "Cy")
    ]
    for name in ("ann-train-share50", "ann-dev", "ann-test", "other-test"):
        DocBin(docs=docs).to_disk(folder / "corpus" / "ner" / f"{name}.spacy")
    monkeypatch.chdir(folder)
    return folder


def run(variant, share=50):
    return Run(
        size="tiny", data=ANN, variant=variant, seed=3, share=share, steps=40, minutes=1.0,
        limits={}, also=(OTHER,),
    )  # fmt: skip


def test_scores_of_all_its_sets_and_how_they_came(here):
    made = run("baseline")
    assert 0 < carry_out(made) < 10
    for path in ("ann-50pct", "other-50pct"):
        metrics = json.loads((here / f"metrics/tiny/{path}/ner_baseline-3.json").read_text())
        # Three sentences are learned by heart.
        assert metrics["ents_f"] == 1.0
        record = metrics["run"]
        assert record["documents"] == 3 and 0 < record["minutes"] < 10
        steps, scores = zip(*record["dev"], strict=True)
        assert steps == tuple(range(0, 41, 4)) and max(scores) == 1.0
    # Nothing is left that the figures do not read.
    assert sorted(path.name for path in (here / made.folder).iterdir()) == [
        "config.cfg",
        "log.jsonl",
    ]
    config = spacy.util.load_config(here / made.folder / "config.cfg")
    assert config["system"]["seed"] == 3 and config["training"]["max_steps"] == 40


def test_a_run_of_another_language_names_its_biLM_where_it_reads_one(here):
    of_latin = {"lang": "la", "weights": "la_v1"}
    config = training.run_config(dataclasses.replace(run("elmo"), **of_latin), here / "log")
    assert config["nlp"]["lang"] == "la" and config["components"]["elmo"]["weights"] == "la_v1"
    config = training.run_config(dataclasses.replace(run("baseline"), **of_latin), here / "log")
    assert config["nlp"]["lang"] == "la" and "elmo" not in config["components"]


def test_runs_on_a_set_share_the_layers_of_the_biLM(here, monkeypatch):
    of_mini = dataclasses.replace(run("elmo"), weights="en_mini_v4", steps=4)
    carry_out(of_mini)
    # Of three different Docs, in the training part and in the dev part.
    written = {path: path.stat().st_mtime_ns for path in (here / "layers").rglob("*.npy")}
    assert len(written) == 3
    carry_out(dataclasses.replace(of_mini, seed=4))
    assert {path: path.stat().st_mtime_ns for path in (here / "layers").rglob("*.npy")} == written
    # Where they are does not count as a change of the config.
    began = training.config_digest(of_mini)
    monkeypatch.setattr(training, "LAYERS", here / "elsewhere")
    assert training.config_digest(of_mini) == began


def test_a_missing_corpus_is_known_before_training(here):
    (here / "corpus/ner/other-test.spacy").unlink()
    with pytest.raises(FileNotFoundError, match="no corpus .*other-test.spacy; experiments.r"):
        carry_out(run("baseline"))
    assert sorted(path.name for path in here.iterdir()) == ["corpus"]


def test_what_fails_on_the_way_leaves_nothing(here):
    (here / "corpus/ner/ann-dev.spacy").write_bytes(b"")
    with pytest.raises(ValueError):
        carry_out(run("baseline"))
    assert not list((here / "metrics").rglob("*.json*"))
    assert list((here / "training/tiny/ann-50pct").iterdir()) == []


def test_a_run_is_done_while_its_config_stays(here):
    made, more = run("baseline"), dataclasses.replace(run("baseline"), steps=41)
    assert not done(made)
    carry_out(made)
    shutil.rmtree(here / "training")  # the scores themselves keep what they are of
    assert done(made) and not done(more)
    assert carry_out(made) == 0 and not (here / made.folder).exists()
    # Nobody knows by what it was trained.
    for path in made.metrics.values():
        path.write_text('{"run": {"minutes": 1, "documents": 1, "dev": []}}')
    assert not done(made)


def test_a_run_is_carried_out_by_one_process(here):
    under_way = run("baseline")
    first = next(iter(under_way.metrics.values()))
    first.parent.mkdir(parents=True)
    with lock(first), pytest.raises(BlockingIOError, match=f"process {os.getpid()} "):
        carry_out(under_way)
    assert not (here / under_way.folder).exists()


def test_what_a_killed_process_left_is_removed(here):
    again = run("baseline")
    left = here / again.folder.parent / f".{again.folder.name}.1-1.partial"
    left.mkdir(parents=True)
    carry_out(again)
    assert [path.name for path in left.parent.iterdir()] == [again.folder.name]


def test_scores_keep_the_config_that_training_began_with(here, monkeypatch):
    """The scores have the config from the start of the training, even if files of the project have changed since."""
    made = run("baseline")
    began = training.config_digest(made)
    configs = here.parent / "configs"
    original = configs.resolve()
    configs.unlink()
    shutil.copytree(original, configs)
    config = configs / "ner_baseline.cfg"

    def train(*args, **kwargs):
        config.write_text(config.read_text().replace("\ndropout = 0.", "\ndropout = 0.0"))
        return spacy_train(*args, **kwargs)

    spacy_train = training.train
    monkeypatch.setattr(training, "train", train)
    carry_out(made)
    assert training.config_digest(made) != began
    assert {json.loads(path.read_text())["run"]["config"] for path in made.metrics.values()} == {
        began
    }
