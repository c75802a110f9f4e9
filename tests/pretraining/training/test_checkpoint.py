"""Checkpoints survive kills and crashes."""

import pytest
import torch

from spacy_elmo.pretraining.training import checkpoint


def state(number: int) -> dict:
    return {"step": number, "tensor": torch.full((3,), float(number))}


def test_the_newest_is_loaded(tmp_path):
    assert checkpoint.load(tmp_path / "checkpoint") is None
    for number in (1, 2, 3):
        checkpoint.save(state(number), tmp_path / "checkpoint")
    loaded = checkpoint.load(tmp_path / "checkpoint")
    assert loaded["step"] == 3
    assert loaded["tensor"].tolist() == [3.0] * 3


@pytest.mark.parametrize("left", [0, 1, 100, 0.3, 0.7, -1000, -20, -1, None])
def test_the_previous_one_stands_in(tmp_path, left):
    """If a machine crashes, the newest file may be incomplete or still have its temporary name."""
    checkpoint.save(state(1), tmp_path)
    checkpoint.save(state(2), tmp_path)
    newest = tmp_path / "current.pt"
    if left is None:
        newest.unlink()
    else:
        data = newest.read_bytes()
        newest.write_bytes(data[: int(left * len(data)) if isinstance(left, float) else left])
    assert checkpoint.load(tmp_path)["step"] == 1


def test_no_readable_checkpoint_is_an_error_and_not_a_new_start(tmp_path):
    (tmp_path / "current.pt").write_bytes(b"PK not really")
    with pytest.raises(ValueError, match=r"No checkpoint(?s:.*)current\.pt"):
        checkpoint.load(tmp_path)
