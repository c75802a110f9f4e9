"""`spacy_elmo.pretrain`: raw text to a weights file in one call, and the rules for its output folder."""

import pytest
from confection import Config

from spacy_elmo import Weights, pretrain, weight_names
from spacy_elmo.pretraining import corpus as corpus_module
from spacy_elmo.pretraining.corpus import DATA_FILES
from spacy_elmo.pretraining.run import (
    CorpusReady,
    Finished,
    FolderReady,
    Preparing,
    prepare_run_folder,
)
from tests.disk import tree
from tests.pretraining.conftest import assert_same_run, assert_same_weights, log_of


def test_the_rows_are_those_of_the_log_and_every_file_is_there(make_run_config, tmp_path):
    out = tmp_path / "runs" / "run"
    steps = []
    for row in pretrain(make_run_config(), out):
        steps.append((row.step, row.dev is not None))
        if row.dev is not None:
            assert f">{row.dev.mean:,.1f}<" in (out / "report.html").read_text("utf8")
    assert steps == [(5, False), (10, True), (15, False), (20, True)]
    assert [(row["step"], row["dev"] is not None) for row in log_of(out)] == steps
    assert sorted(path.name for path in out.iterdir()) == [
        "checkpoint", "config.cfg", "corpus", "log.jsonl", "model-best.safetensors", "model-last.safetensors",
        "report.html",
    ]  # fmt: skip
    assert Weights.load(out / "model-last.safetensors").card["steps"] == 20


def test_a_config_is_a_file_its_sections_or_settings(make_run_config, tmp_path):
    config = make_run_config()
    Config(config.model_dump()).to_disk(tmp_path / "run.cfg")
    sections = {key: value for key, value in config.model_dump().items() if key != "card"}
    for name, given in (
        ("settings", config), ("file", tmp_path / "run.cfg"), ("string", str(tmp_path / "run.cfg")), ("dict", sections),
    ):  # fmt: skip
        list(pretrain(given, str(tmp_path / name), overrides={"training.max_steps": 2}))
        assert_same_weights(tmp_path / name, tmp_path / "settings")


def test_initial_weights_have_a_name(make_run_config, tmp_path, monkeypatch):
    list(pretrain(make_run_config(), tmp_path / "first"))
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(weight_names, "FOLDER", tmp_path / "bundled")
    given = Weights.load(tmp_path / "first/model-best.safetensors")
    given.save(tmp_path / "bundled/en_toy.safetensors")
    sections = make_run_config().model_dump()
    sections["training"]["vocab_size"] = None  # which requires initial weights
    start = next(pretrain(sections, tmp_path / "run", overrides={"paths.init": "en_toy"}))
    assert start.step == 0
    assert start.dev.mean == pytest.approx(given.card["perplexity"]["mean"], rel=1e-6)
    weights = Weights.load(tmp_path / "run/model-best.safetensors")
    assert weights.card["init"] == given.card


def test_the_caller_is_told_of_every_stage(make_run_config, text_file, tmp_path):
    out, stages = tmp_path / "run", []
    rows = pretrain(make_run_config(), out, notify=stages.append)
    assert stages == [] and not out.exists()
    first = next(rows)
    folder, preparing, ready = stages
    assert folder == FolderReady(has_checkpoint=False)
    assert preparing == Preparing(make_run_config().paths)
    assert preparing.paths.text_files() == {str(text_file): [text_file]}
    assert isinstance(ready, CorpusReady) and ready.sources == (None, None)
    assert "barks" in ready.corpus.types and first.step == 5
    *_, last = rows
    assert stages[3:] == [Finished(last)]
    # A complete run has nothing to do, and its report is made up for.
    stages.clear()
    (out / "report.html").unlink()
    assert list(pretrain(make_run_config(), out, resume=True, notify=stages.append)) == []
    assert stages[0] == FolderReady(has_checkpoint=True)
    assert stages[2:] == [Finished(None)] and (out / "report.html").exists()
    stages.clear()
    next(pretrain(make_run_config(), out, force=True, notify=stages.append))
    assert stages[0] == FolderReady(has_checkpoint=False)


def test_a_run_that_is_left_goes_on_as_if_it_had_not_been(make_run_config, text_file, tmp_path):
    """A run that is stopped and resumed needs its text no longer, and its folder is unlocked."""
    config = make_run_config(dropout=0.1)
    list(pretrain(config, tmp_path / "unbroken"))
    for _ in range(3):
        for row in pretrain(config, tmp_path / "broken", resume=True):
            if row.step % 10 == 5:
                break
    text_file.unlink()
    list(pretrain(config, tmp_path / "broken", resume=True))
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


def test_the_files_of_a_corpus_are_read_once(make_run_config, tmp_path, monkeypatch):
    """A new corpus is read for its digests, and an existing one to check them."""
    read, original = [], corpus_module.file_digest
    monkeypatch.setattr(
        corpus_module, "file_digest", lambda path: read.append(path.name) or original(path)
    )
    list(pretrain(make_run_config(max_steps=2), tmp_path / "run"))
    assert sorted(read) == sorted(DATA_FILES)
    read.clear()
    given = {"paths.corpus": str(tmp_path / "run/corpus"), "paths.raw_text": None}
    list(pretrain(make_run_config(max_steps=2), tmp_path / "other", overrides=given))
    assert sorted(read) == sorted(DATA_FILES)
    assert_same_weights(tmp_path / "run", tmp_path / "other")


def test_a_corpus_or_a_start_that_cannot_be_read_costs_no_run(make_run_config, corpus, tmp_path):
    given = {"paths.corpus": str(tmp_path / "corpus"), "paths.raw_text": None}
    list(pretrain(make_run_config(max_steps=2), tmp_path / "run", overrides=given))
    before = tree(tmp_path / "run")
    (tmp_path / "corpus/counts.npy").write_bytes(b"")
    with pytest.raises(ValueError, match="corpus is damaged"):
        next(pretrain(make_run_config(), tmp_path / "run", overrides=given, force=True))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        next(
            pretrain(
                make_run_config(), tmp_path / "run", overrides={"paths.init": "nowhere"}, force=True
            )
        )
    assert tree(tmp_path / "run") == before


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def run(tmp_path, make_run_config):
    """Return a folder with all files of a run, and a file of its user."""
    out = tmp_path / "run"
    prepare_run_folder(out, make_run_config())
    for name in (
        "log.jsonl",
        "model-best.safetensors",
        "notes.txt",
        "corpus/corpus.json",
        "checkpoint/current.pt",
    ):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).touch()
    return out


def test_a_run_is_never_overwritten_unasked(run, make_run_config):
    with pytest.raises(FileExistsError, match=r"\(log.jsonl.*--resume.*--force"):
        prepare_run_folder(run, make_run_config())
    before = names(run)
    prepare_run_folder(run, make_run_config(), resume=True)
    assert names(run) == before
    prepare_run_folder(run, make_run_config(), force=True)
    assert names(run) == ["config.cfg", "notes.txt"]


def test_resume_refuses_other_settings_and_lets_the_end_move(run, make_run_config):
    with pytest.raises(ValueError, match=r"training\.batch_tokens = 32, was 64"):
        prepare_run_folder(run, make_run_config(batch_tokens=32), resume=True)
    prepare_run_folder(run, make_run_config(max_steps=99, save_every=1), resume=True)
    (run / "config.cfg").write_text("")
    with pytest.raises(ValueError, match="run/config.cfg"):
        prepare_run_folder(run, make_run_config(), resume=True)


def test_force_deletes_nothing_for_a_start_that_cannot_be(run, make_run_config, text_file):
    config, before = make_run_config(), tree(run)
    for name, path in (
        ("corpus", "corpus"),
        ("init", "model-best.safetensors"),
        ("teacher", "corpus"),
    ):
        paths = config.paths.model_copy(update={name: str(run / path)})
        with pytest.raises(
            ValueError, match=f"paths.{name} .*which force .`--force`. would delete"
        ):
            prepare_run_folder(run, config.model_copy(update={"paths": paths}), force=True)
    text_file.unlink()
    with pytest.raises(FileNotFoundError, match="No text at"):
        prepare_run_folder(run, config, force=True)
    assert tree(run) == before


@pytest.mark.parametrize("name", ["corpus/a.txt", "checkpoint/a.txt", "config.cfg"])
@pytest.mark.parametrize("force", [False, True])
def test_files_of_others_are_never_replaced(tmp_path, make_run_config, name, force):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('[nlp]\nlang = "en"\n')
    with pytest.raises(FileExistsError, match="not from a run"):
        prepare_run_folder(tmp_path, make_run_config(), force=force)
    assert path.read_text() == '[nlp]\nlang = "en"\n'


def test_hidden_files_and_what_killed_runs_left(tmp_path, make_run_config):
    """Systems leave hidden files, killed runs temporary ones. A run that failed on its text leaves config.cfg."""
    prepare_run_folder(tmp_path, make_run_config())
    for folder in ("corpus", "checkpoint", ".corpus.12-34.partial"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".DS_Store").touch()
    (tmp_path / ".model-best.safetensors.12-34.partial").touch()
    # Another command writes to the folder "latin" in this folder.
    (tmp_path / ".latin.12-34.partial").mkdir()
    prepare_run_folder(tmp_path, make_run_config(), force=True)
    assert names(tmp_path) == [".latin.12-34.partial", "config.cfg", "raw.txt"]
