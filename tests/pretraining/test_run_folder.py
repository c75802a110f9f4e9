"""Rules by which a run may use an output folder."""

import shutil
from pathlib import Path

import pytest

from spacy_elmo.pretraining.run_folder import prepare_run_folder
from spacy_elmo.pretraining.training.loop import train
from spacy_elmo.run_lock import locked_folder
from tests.disk import tree


def test_a_run_is_never_overwritten_unasked(tmp_path, make_run_config, corpus):
    out, config = tmp_path / "run", make_run_config()
    assert not prepare_run_folder(out, config).has_checkpoint
    next(train(config, corpus, out))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"\(log.jsonl.*--resume.*--force"):
        prepare_run_folder(out, config)
    assert prepare_run_folder(out, config, resume=True).has_checkpoint
    assert not prepare_run_folder(out, config, force=True).has_checkpoint
    assert sorted(path.name for path in out.iterdir()) == ["config.cfg", "notes.txt", "replaced"]


def test_a_kill_while_a_run_is_set_aside(tmp_path, make_run_config, corpus, monkeypatch):
    out, config = tmp_path / "run", make_run_config()
    prepare_run_folder(out, config)
    for _ in train(config, corpus, out):
        pass
    before = tree(out)
    for moment in range(len(list(out.iterdir()))):
        moves = []

        def rename(path, target, moves=moves, moment=moment, move=Path.rename):
            if len(moves) == moment:
                raise KeyboardInterrupt
            moves.append(path)
            return move(path, target)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "rename", rename)
            prepare_run_folder(out, config, force=True)
        prepare_run_folder(out, config, force=True)
        kept = tree(out / "replaced")
        assert {name.replace("replaced/", "run/"): data for name, data in kept.items()} == before
        shutil.rmtree(tmp_path / "saved", ignore_errors=True)
        (out / "replaced").rename(tmp_path / "saved")
        shutil.rmtree(out)
        (tmp_path / "saved").rename(out)


def test_a_folder_in_which_nothing_was_written_is_removed(tmp_path):
    with locked_folder(tmp_path / "other"):
        pass
    assert not (tmp_path / "other").exists()


def test_resume_with_nothing_to_resume(tmp_path, make_run_config):
    assert not prepare_run_folder(tmp_path / "run", make_run_config(), resume=True).has_checkpoint
    assert (tmp_path / "run/config.cfg").exists()
    (tmp_path / "run/checkpoint").mkdir()
    for name, has_checkpoint in ((".current.pt.123.partial", False), ("previous.pt", True)):
        (tmp_path / "run/checkpoint" / name).touch()
        ready = prepare_run_folder(tmp_path / "run", make_run_config(), resume=True)
        assert ready.has_checkpoint == has_checkpoint


def test_resume_refuses_other_settings_and_lets_the_end_move(tmp_path, make_run_config):
    prepare_run_folder(tmp_path / "run", make_run_config())
    (tmp_path / "run/checkpoint").mkdir()
    (tmp_path / "run/checkpoint/current.pt").touch()
    with pytest.raises(ValueError, match=r"training\.batch_tokens = 32, was 64"):
        prepare_run_folder(tmp_path / "run", make_run_config(batch_tokens=32), resume=True)
    longer = make_run_config(max_steps=99, save_every=1)
    assert prepare_run_folder(tmp_path / "run", longer, resume=True).has_checkpoint


def test_force_deletes_nothing_for_a_start_that_cannot_be(
    tmp_path, make_run_config, corpus, text_file
):
    out, config = tmp_path / "run", make_run_config()
    prepare_run_folder(out, config)
    (out / "checkpoint").mkdir()
    (out / "corpus").mkdir()
    inside = config.paths.model_copy(update={"corpus": str(out / "corpus")})
    with pytest.raises(ValueError, match="which force .`--force`. would replace"):
        prepare_run_folder(out, config.model_copy(update={"paths": inside}), force=True)
    text_file.unlink()
    with pytest.raises(FileNotFoundError, match="No text at"):
        prepare_run_folder(out, config, force=True)
    assert (out / "checkpoint").exists()


@pytest.mark.parametrize(
    "name", ["corpus/a.txt", "checkpoint/a.txt", "replaced/a.txt", "config.cfg"]
)
@pytest.mark.parametrize("force", [False, True])
def test_files_of_others_are_never_replaced(tmp_path, make_run_config, name, force):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('[nlp]\nlang = "en"\n')
    with pytest.raises(FileExistsError, match="not from a run"):
        prepare_run_folder(tmp_path, make_run_config(), force=force)
    assert path.read_text() == '[nlp]\nlang = "en"\n'


def test_a_run_is_restarted_beside_hidden_files(tmp_path, make_run_config):
    """Systems and killed runs leave hidden files. A run that failed when it read its text leaves config.cfg."""
    config = make_run_config()
    prepare_run_folder(tmp_path, config)
    for folder in ("corpus", "checkpoint", "replaced"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".DS_Store").touch()
    assert not prepare_run_folder(tmp_path, config, force=True).has_checkpoint


def test_what_killed_runs_left_is_swept_away(tmp_path, make_run_config):
    out = tmp_path / "run"
    (out / ".corpus.12-34.partial").mkdir(parents=True)
    (out / ".model-best.safetensors.12-34.partial").touch()
    (out / ".replaced.12-34.partial").mkdir()
    # Another command writes to the folder "latin" in this folder.
    (out / ".latin.12-34.partial").mkdir()
    prepare_run_folder(out, make_run_config())
    assert sorted(path.name for path in out.iterdir()) == [".latin.12-34.partial", "config.cfg"]


def test_a_damaged_config_of_the_run_is_named(tmp_path, make_run_config):
    out = tmp_path / "run"
    (out / "checkpoint").mkdir(parents=True)
    (out / "config.cfg").touch()
    with pytest.raises(ValueError, match="run/config.cfg"):
        prepare_run_folder(out, make_run_config(), resume=True)
