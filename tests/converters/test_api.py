"""`spacy_elmo.convert`: the whole conversion in one call."""

import inspect
import logging
from typing import get_args, get_type_hints

import pytest
import torch

from spacy_elmo.cli.convert import ModelFormat, convert_cli
from spacy_elmo.converters.api import convert
from spacy_elmo.converters.formats import FORMATS
from tests import tiny
from tests.converters import foreign


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "theirs"
    path.mkdir()
    foreign.write_model(path, tiny.bilm(tiny.config()))
    return path


def test_writes_and_returns_the_weights(folder, tmp_path, caplog):
    (tmp_path / "text.txt").write_text("a cat sat\n" * 20)
    with caplog.at_level(logging.INFO, "spacy_elmo"):
        weights = convert(
            folder,
            tmp_path / "w.safetensors",
            lang="en",
            dtype="float16",
            warm=tmp_path / "text.txt",
        )
    assert (tmp_path / "w.safetensors").is_file()
    assert weights.card["language"] == "en" and weights.start_state is not None
    assert {tensor.dtype for tensor in weights.tensors.values()} == {torch.float16}
    assert caplog.messages[0].startswith("bilm-hdf5: ")


def test_writes_only_where_it_is_told(folder, tmp_path):
    before = set(tmp_path.rglob("*"))
    convert(folder)
    assert set(tmp_path.rglob("*")) == before
    (tmp_path / "w.safetensors").write_text("mine")
    with pytest.raises(FileExistsError, match="w.safetensors already exists"):
        convert(folder, tmp_path / "w.safetensors")
    assert (tmp_path / "w.safetensors").read_text() == "mine"
    convert(folder, tmp_path / "w.safetensors", force=True)
    assert (tmp_path / "w.safetensors").stat().st_size > 4


def test_a_named_format_and_its_options(folder):
    (options,) = folder.glob("*options*.json")
    assert convert(folder, format="bilm-hdf5", options=options).config.dim == 7
    with pytest.raises(ValueError, match="'onnx' is unknown. .*bilm-hdf5"):
        convert(folder, format="onnx")
    for dtype in ("int8", "double precision"):
        with pytest.raises(ValueError, match=f"'{dtype}' .*float32 .*float16"):
            convert(folder, dtype=dtype)
    assert convert(folder, options=options, weights=None).config.dim == 7


@pytest.mark.parametrize("format", ["bilm-hdf5", "auto"])
def test_an_option_of_another_format(folder, format):
    with pytest.raises(ValueError, match="bilm-hdf5 has no option accept .*, prefix .*softmax"):
        convert(folder, format=format, prefix="x", accept=True)


def test_the_formats_are_those_of_the_table():
    names = sorted(["auto", *(format.name for format in FORMATS)])
    assert sorted(get_args(get_type_hints(convert)["format"])) == names
    assert sorted(choice.value for choice in ModelFormat) == names


def test_the_command_has_the_options_of_every_format():
    options = set().union(*(format.options for format in FORMATS))
    assert options <= inspect.signature(convert_cli).parameters.keys()
