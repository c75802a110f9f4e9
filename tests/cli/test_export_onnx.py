"""`python -m spacy elmo export onnx` writes one file, or prints one message."""

import onnxruntime
import pytest
import torch

from tests import tiny
from tests.commands import elmo


def invoke(*arguments):
    return elmo("export", "onnx", *arguments)


@pytest.fixture
def file(tmp_path):
    return tiny.save(tmp_path / "w.safetensors")


def test_values(file, tmp_path):
    out, model = tmp_path / "elmo.onnx", tiny.bilm(tiny.config())
    code, output = invoke(file, out)
    assert code == 0, output
    assert f"elmo.onnx: {out.stat().st_size / 1e3:.1f} kB" in output
    ids = model.token_ids(["a", "cat"]).long()[None].numpy()
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    (layers,) = session.run(None, {"ids": ids, "lengths": [2]})
    expected = tiny.read(model, [["a", "cat"]]).layers
    torch.testing.assert_close(torch.from_numpy(layers[:, 0]), expected, atol=1e-5, rtol=0)


def test_a_file_that_stands_there(file, tmp_path):
    out = tmp_path / "elmo.onnx"
    out.write_bytes(b"mine")
    code, output = invoke(file, out)
    assert code == 1 and "To overwrite it, set force (`--force`)" in output
    assert out.read_bytes() == b"mine"
    code, output = invoke(file, out, "--force")
    assert code == 0, output
    assert out.read_bytes() != b"mine"


def test_a_file_that_is_no_weights_file(file, tmp_path):
    file.write_bytes(b"damaged")
    code, output = invoke(file, tmp_path / "elmo.onnx")
    assert code == 1 and "not a readable weights file" in output
    assert list(tmp_path.iterdir()) == [file]
