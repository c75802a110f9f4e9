"""Detection of the format of a folder: each of the four formats, none, several, and missing files."""

import pytest
import torch

from spacy_elmo.converters.api import read_model
from spacy_elmo.converters.formats import FORMATS, detect
from tests import tiny
from tests.converters import foreign, foreign_allennlp, foreign_many_langs
from tests.converters.bilm_tf import test_checkpoint_conversion as test_bilm_tf

CONFIG = tiny.config()


def write(format, folder):
    """Write a model in this format."""
    folder.mkdir(exist_ok=True)
    if format == "many-langs":
        foreign_many_langs.write_model(folder, foreign_many_langs.options())
    else:
        writer = {"bilm-hdf5": foreign, "allennlp": foreign_allennlp}.get(format)
        model = tiny.bilm(CONFIG)
        writer.write_model(folder, model) if writer else test_bilm_tf.write(folder, model)
    return folder


NAMES = [format.name for format in FORMATS]
REASONS = {
    "bilm-hdf5": 'options.json has "lstm", lm_weights.hdf5 has RNN_0',
    "many-langs": "encoder.pkl and token_embedder.pkl",
    "allennlp": "config.json and weights.th",
    "bilm-tf": "model.ckpt-7.index is a TensorFlow checkpoint with 27 variables under lm/",
}


@pytest.mark.parametrize("name", NAMES)
def test_each_format(tmp_path, name):
    folder = write(name, tmp_path)
    format, reason = detect(folder)
    assert (format.name, reason) == (name, REASONS[name])
    conversion = read_model(folder, lang="la")
    expected = format.convert(folder)
    assert conversion.notes == [f"{name}: {REASONS[name]}", *expected.notes]
    assert conversion.weights.card["language"] == "la"
    assert "--lang" in read_model(folder).notes[-1]
    assert conversion.weights.config == expected.weights.config
    assert conversion.weights.tensors.keys() == expected.weights.tensors.keys()
    for key, tensor in expected.weights.tensors.items():
        assert torch.equal(conversion.weights.tensors[key], tensor)


@pytest.mark.parametrize(
    "name, file", [("bilm-hdf5", "lm_weights.hdf5"), ("allennlp", "weights.th"), ("bilm-tf", "model.ckpt-7.index")]
)  # fmt: skip
def test_file_of_a_folder(tmp_path, name, file):
    format, _ = detect(write(name, tmp_path) / file)
    assert format.name == name
    assert read_model(tmp_path / file).weights.config.dim == CONFIG.dim


@pytest.mark.parametrize(
    "name, missing, line",
    [
        ("bilm-hdf5", "lm_weights.hdf5", "bilm-hdf5: missing weights with RNN_0 (.hdf5); present options.json"),
        ("bilm-hdf5", "options.json", "bilm-hdf5: missing options (.json); present lm_weights.hdf5"),
        ("allennlp", "weights.th", "allennlp: missing weights.th or best.th; present config.json"),
        ("bilm-tf", "model.ckpt-7.index", "bilm-tf: missing a checkpoint (.index); present options.json"),
    ],
)  # fmt: skip
def test_what_is_missing(tmp_path, name, missing, line):
    (write(name, tmp_path) / missing).unlink()
    with pytest.raises(ValueError, match="a known format") as error:
        detect(tmp_path)
    assert f"  {line}" in str(error.value).split("\n")


def test_damaged_file_is_named(tmp_path):
    (write("bilm-hdf5", tmp_path) / "lm_weights.hdf5").write_bytes(b"broken")
    with pytest.raises(ValueError) as error:
        detect(tmp_path)
    line = "present options.json, lm_weights.hdf5, but not readable as this format; `convert bilm-hdf5` shows why"
    assert f"  bilm-hdf5: {line}" in str(error.value).split("\n")


def test_several_formats(tmp_path):
    for name in NAMES:
        write(name, tmp_path)
    with pytest.raises(ValueError, match="several formats") as error:
        detect(tmp_path)
    lines = [f"  {name}: {reason}" for name, reason in REASONS.items()]
    assert str(error.value).split("\n")[1:] == lines


def test_nothing(tmp_path):
    with pytest.raises(ValueError, match="many-langs: missing config.json"):
        detect(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        detect(tmp_path / "nowhere")
    (tmp_path / "a.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="a.safetensors has no known format"):
        detect(tmp_path / "a.safetensors")


def test_errors_say_whose_options_they_name(tmp_path):
    config = foreign_allennlp.config_of(do_layer_norm=True)
    state, options = foreign_allennlp.tagger_of(tiny.bilm(CONFIG)), foreign.options_of(CONFIG)
    foreign_allennlp.write(tmp_path, state, config, options)
    with pytest.raises(ValueError) as error:
        read_model(tmp_path)
    first, last = str(error.value).split("\n")
    assert "without this normalization, set accept (`--accept`)" in first
    assert last == "  The detected format is allennlp (config.json and weights.th)"
    accepted = read_model(tmp_path, accept=True).weights.tensors
    expected = read_model(tmp_path, "allennlp", accept=True).weights.tensors
    assert accepted.keys() == expected.keys()
    assert all(torch.equal(accepted[name], expected[name]) for name in expected)


def test_missing_files_say_as_what_they_are_missed(tmp_path):
    (write("many-langs", tmp_path) / "token_embedder.pkl").unlink()
    with pytest.raises(ValueError, match=r"(?s)token_embedder.pkl.*encoder.pkl"):
        read_model(tmp_path)
