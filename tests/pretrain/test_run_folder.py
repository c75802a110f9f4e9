"""Rules by which a run may use an output folder."""

import pytest

from spacy_elmo.pretrain.run_folder import claim, run_corpus
from spacy_elmo.pretrain.training.loop import pretrain


@pytest.fixture
def make_config(make_config, text_file):
    """Return a config with text, which `claim` requires."""

    def make(**training):
        config = make_config(**training)
        paths = config.paths.model_copy(update={"raw_text": str(text_file)})
        return config.model_copy(update={"paths": paths})

    return make


def test_a_run_is_never_overwritten_unasked(tmp_path, make_config, corpus):
    out, config = tmp_path / "run", make_config()
    assert claim(out, config) is False
    next(pretrain(config, corpus, out))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"already contains a run \(log.jsonl.*--resume.*--force"
    ):
        claim(out, config)
    assert claim(out, config, resume=True) is True
    assert claim(out, config, force=True) is False
    assert sorted(path.name for path in out.iterdir()) == ["config.cfg", "notes.txt"]


def test_resume_with_nothing_to_resume(tmp_path, make_config):
    assert claim(tmp_path / "run", make_config(), resume=True) is False
    assert (tmp_path / "run/config.cfg").exists()


def test_resume_refuses_other_settings_and_lets_the_end_move(tmp_path, make_config):
    claim(tmp_path / "run", make_config())
    (tmp_path / "run/checkpoint").mkdir()
    with pytest.raises(ValueError, match=r"training\.batch_tokens = 32, was 64"):
        claim(tmp_path / "run", make_config(batch_tokens=32), resume=True)
    assert claim(tmp_path / "run", make_config(max_steps=99, save_every=1), resume=True) is True


def test_text_is_prepared_once(tmp_path, make_config, text_file):
    first = run_corpus(make_config(), tmp_path / "run")
    text_file.unlink()
    assert run_corpus(make_config(), tmp_path / "run").types == first.types


def test_force_deletes_nothing_for_a_start_that_cannot_be(tmp_path, make_config, corpus, text_file):
    out, config = tmp_path / "run", make_config()
    claim(out, config)
    (out / "checkpoint").mkdir()
    (out / "corpus").mkdir()
    inside = config.paths.model_copy(update={"corpus": str(out / "corpus")})
    with pytest.raises(ValueError, match="which --force would delete"):
        claim(out, config.model_copy(update={"paths": inside}), force=True)
    text_file.unlink()
    with pytest.raises(FileNotFoundError, match="No text at"):
        claim(out, config, force=True)
    assert (out / "checkpoint").exists()


def test_what_killed_runs_left_is_swept_away(tmp_path, make_config):
    out = tmp_path / "run"
    (out / ".corpus.partial").mkdir(parents=True)
    (out / ".model-best.safetensors.123.partial").touch()
    claim(out, make_config())
    assert [path.name for path in out.iterdir()] == ["config.cfg"]


def test_a_damaged_config_of_the_run_is_named(tmp_path, make_config):
    out = tmp_path / "run"
    (out / "checkpoint").mkdir(parents=True)
    (out / "config.cfg").touch()
    with pytest.raises(ValueError, match="run/config.cfg, the config of the run to resume"):
        claim(out, make_config(), resume=True)
