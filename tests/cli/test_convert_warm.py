"""`convert FORMAT IN OUT_FILE --warm TEXT` for every format, up to the vectors of a pipeline."""

import numpy as np
import pytest

from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny
from tests.cli.test_convert import WRITERS
from tests.commands import elmo
from tests.converters.bilm_tf import test_checkpoint_conversion as test_bilm_tf


def write_bilm_tf(folder):
    folder.mkdir()
    return test_bilm_tf.write(folder, tiny.bilm(tiny.config()))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a cat sat .\nit rained ,\n\nand so on .\n" * 9, "utf8")
    return path


def invoke(*arguments):
    return elmo("convert", *arguments)


@pytest.mark.parametrize("format", [*WRITERS, "bilm-tf", "auto"])
def test_every_format(tmp_path, text, format):
    writer = {**WRITERS, "bilm-tf": write_bilm_tf, "auto": WRITERS["bilm-hdf5"]}[format]
    folder, out = writer(tmp_path / "model"), tmp_path / "out.safetensors"
    code, output = invoke(format, folder, out, "--warm", text)
    assert code == 0, output
    assert "start state: mean over 27 sentences of text.txt" in output and f"Read {text}" in output
    start = Weights.load(out).start_state
    assert start.h.shape == (2, 2, 5) and start.h.abs().max() > 1e-3
    cold, warm = (pipelines.blank(out, start=start)("A cat.") for start in ("zero", "warm"))
    assert np.abs(cold._.elmo_layers - warm._.elmo_layers).max() > 1e-3


@pytest.mark.parametrize("content", [None, "one line\n"])
def test_error_writes_nothing(tmp_path, text, content):
    text.unlink()
    if content is not None:
        text.write_text(content, "utf8")
    folder = WRITERS["bilm-hdf5"](tmp_path / "model")
    before = set(tmp_path.rglob("*"))
    code, output = invoke("bilm-hdf5", folder, tmp_path / "out.safetensors", "--warm", text)
    assert code == 1
    assert (
        "too few sentences for a start state: 1" in output if content else "No such file" in output
    )
    assert set(tmp_path.rglob("*")) == before
