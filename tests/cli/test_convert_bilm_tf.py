"""`python -m spacy elmo convert bilm-tf`, and `convert auto` for such a folder."""

import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from tests import tiny
from tests.commands import elmo
from tests.converters.bilm_tf.test_checkpoint_conversion import WORDS, head_of, write, write_words


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "training"
    folder.mkdir()
    return write(folder, tiny.bilm(tiny.config()))


def invoke(*arguments):
    return elmo("convert", *arguments)


@pytest.mark.parametrize("format", ["bilm-tf", "auto"])
def test_values(folder, tmp_path, format):
    write_words(folder / "vocab.txt")
    out = tmp_path / "out.safetensors"
    code, output = invoke(format, folder, out)
    assert code == 0, output
    for text in (
        "model.ckpt-7.data-00000-of-00001",
        "checkpoint model.ckpt-7",
        "head: softmax over the 8 words",
    ):
        assert text in output
    weights = Weights.load(out)
    model = tiny.bilm(tiny.config())
    for name, tensor in model.state_dict().items():
        assert torch.equal(weights.tensors[name], tensor)
    assert torch.equal(weights.build_head().weight, head_of(model).weight)


def test_vocabulary_of_another_folder(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    code, output = invoke("bilm-tf", folder, out)
    assert code == 0
    assert "no head: the softmax needs the vocabulary of the training" in output
    assert Weights.load(out).build_head() is None
    words = write_words(tmp_path / "words")
    assert invoke("bilm-tf", folder, out, "--vocabulary", words, "--force")[0] == 0
    assert Weights.load(out).vocabulary == WORDS


def test_damaged_checkpoint(folder, tmp_path):
    path = folder / "model.ckpt-7.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-100])
    out = tmp_path / "out.safetensors"
    code, output = invoke("bilm-tf", folder, out, "--vocabulary", write_words(tmp_path / "words"))
    assert code == 0  # what is cut off is the state of the optimizer, which nobody reads
    path.write_bytes(path.read_bytes()[:100])
    out.unlink()
    code, output = invoke("bilm-tf", folder, out)
    assert code == 1
    assert "truncated or belongs to another checkpoint" in output
    assert "Traceback" not in output
    assert not out.exists()
