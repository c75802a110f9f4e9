"""What a new run may do to an old one."""

import pytest

from spacy_elmo.pretrain.loop import pretrain
from spacy_elmo.pretrain.run_folder import claim, run_corpus


def test_a_run_is_never_overwritten_unasked(tmp_path, make_config, corpus):
    out, config = tmp_path / "run", make_config()
    assert claim(out, config) is False
    next(pretrain(config, corpus, out))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"holds a run already \(log.jsonl.*--resume.*--force"
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
    with pytest.raises(ValueError, match=r"training\.learn_rate = 0\.5, was 0\.003"):
        claim(tmp_path / "run", make_config(learn_rate=0.5), resume=True)
    assert claim(tmp_path / "run", make_config(max_steps=99, save_every=1), resume=True) is True


def test_text_is_prepared_once(tmp_path, make_config, text_file):
    config = make_config()
    config = config.model_copy(
        update={"paths": config.paths.model_copy(update={"raw_text": str(text_file)})}
    )
    first = run_corpus(config, tmp_path / "run")
    text_file.unlink()
    assert run_corpus(config, tmp_path / "run").types == first.types
