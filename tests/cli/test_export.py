"""`python -m spacy elmo export`, once through spaCy's command line, and otherwise in this process."""

import pytest
import torch
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from spacy_elmo.converters.allennlp import conversion as allennlp
from spacy_elmo.converters.bilm_tf import hdf5_conversion as bilm_hdf5
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, find_weights
from tests import tiny
from tests.commands import elmo


def test_what_allennlp_cannot_read(tmp_path):
    """bilm-tf loads every export. AllenNLP's loader supports fewer models, and the command warns about this."""
    for fields, reason in [
        ({"max_characters": 50, "skip": True}, None),
        ({"max_characters": 12, "skip": True}, "max_characters = 12"),
        ({"max_characters": 50, "skip": False}, "skip = false"),
    ]:
        tiny.save(tmp_path / "w.safetensors", **fields)
        arguments = ["export", "bilm-hdf5", tmp_path / "w.safetensors", tmp_path / "out", "--force"]
        result = CliRunner().invoke(elmo_cli, list(map(str, arguments)))
        assert result.exit_code == 0
        assert ("AllenNLP cannot" in result.output) == (reason is not None)
        assert reason is None or reason in " ".join(result.output.split())


CONVERT = {"bilm-hdf5": bilm_hdf5.convert, "allennlp": allennlp.convert}
FILES = {
    "bilm-hdf5": {"options.json", "weights.hdf5"},
    "allennlp": {"options.json", "weights.th"},
}
formats = pytest.mark.parametrize("format", CONVERT)


@pytest.fixture
def file(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", max_characters=50)


def invoke(*arguments):
    return elmo("export", *arguments)


@formats
def test_values(file, tmp_path, format):
    out = tmp_path / "out"
    code, output = invoke(format, file, out)
    assert code == 0, output
    assert {path.name for path in out.iterdir()} == FILES[format]
    assert all(str(path) in output.replace(" ", "") for path in out.iterdir())
    models = [CONVERT[format](out).weights.build_bilm(), Weights.load(file).build_bilm()]
    layers = [tiny.read(model, [["a", "cat"]]).layers for model in models]
    assert torch.equal(*layers)


@formats
def test_bundled_name(tmp_path, format):
    code, output = invoke(format, DEFAULT_WEIGHTS, tmp_path / "out")
    assert code == 0, output
    expected = Weights.load(find_weights(DEFAULT_WEIGHTS))
    got = CONVERT[format](tmp_path / "out").weights
    name = "encoder.projection.weight"
    assert torch.equal(got.tensors[name], expected.tensors[name].float())


@formats
def test_existing_files(file, tmp_path, format):
    out = tmp_path / "out"
    out.mkdir()
    (out / "options.json").write_text("precious")
    (out / "other").write_text("mine")
    code, output = invoke(format, file, out)
    assert code == 1
    assert "contains options.json. To overwrite, set force (`--force`)" in output
    assert {path.name for path in out.iterdir()} == {"options.json", "other"}
    assert (out / "options.json").read_text() == "precious"
    assert invoke(format, file, out, "--force")[0] == 0
    assert {path.name for path in out.iterdir()} == {*FILES[format], "other"}
    CONVERT[format](out)
