"""Rules by which a run may use an output folder."""

import pytest

from spacy_elmo.pretraining.run import prepare_run_folder
from tests.disk import tree


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
