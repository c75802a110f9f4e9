"""AllenNLP's trained models in, its state dict out, and what damaged files are told.

`test_against_allennlp.py` compares both with AllenNLP itself.
"""

import dataclasses
import json

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters import allennlp
from spacy_elmo.converters.allennlp import convert, export, state_of
from tests import tiny
from tests.converters import foreign, foreign_allennlp
from tests.converters.foreign import changed

PREFIX = foreign_allennlp.PREFIX
BILM = PREFIX + "_elmo_lstm."
CELL = BILM + "_elmo_lstm.forward_layer_0."
SENTENCES = [["a", "cat"], ["extraordinarily", "鳥", "</S>"]]
MIXES = [([0.5, -1.25, 2.0], 1.5), ([0.0, 0.0, 0.0], 1.0)]
ROUND_TRIPS = {
    "as published": {"highways": 2},
    "no highway": {"highways": 0},
    "no clips": {"cell_clip": None, "proj_clip": None},
    "one layer": {"layers": 1},
    "three layers": {"layers": 3, "activation": "tanh"},
    "no forget bias": {"forget_bias": 0.0},
    "square LSTM": {"dim": 5, "square_projections": True},
    "square filters": {"filters": ((1, 2), (2, 3)), "square_projections": True},
}


def model_of(seed=0, **fields):
    return tiny.bilm(tiny.config(**({"max_characters": 50} | fields)), seed)


def assert_same_model(weights, model):
    """Assert that two models compute the same, wherever the forget bias is added."""
    ours, theirs = weights.config, model.config
    assert dataclasses.replace(ours, forget_bias=theirs.forget_bias) == theirs
    assert ours.forget_bias == 0.0
    layers = [tiny.read(bilm, SENTENCES).layers for bilm in (weights.build_bilm(), model)]
    assert torch.equal(*layers)


@pytest.mark.parametrize("fields", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_round_trip(tmp_path, fields):
    """Conversion keeps the layers and the mixes bit for bit, and export writes what an independent writer does."""
    model = model_of(**fields)
    mixes = [([*numbers, 3.0][: model.config.layers + 1], gamma) for numbers, gamma in MIXES]
    folder = foreign_allennlp.write_model(tmp_path / "in", model, mixes)
    weights, notes = convert(folder)
    weights = Weights.from_bytes(weights.to_bytes())
    assert_same_model(weights, model)
    assert weights.card["converted_from"] == "weights.th (AllenNLP)"
    shown = ", ".join(f"{number:.4g}" for number in mixes[0][0])
    assert f"{PREFIX}scalar_mix_0: weights {shown} (before the softmax), gamma 1.5" in notes
    files = export(weights, tmp_path / "out")
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    expected = foreign_allennlp.state_of(model, mixes)
    back = torch.load(files[1], weights_only=True)
    assert back.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(back[name], tensor), name
    assert_same_model(convert(tmp_path / "out")[0], model)


@pytest.mark.parametrize("place", ["fta/model.elmo.options_file", "elmo_options.json", "../o.json"])
def test_where_the_options_are(tmp_path, place):
    """They are packed under their setting, named so, or given. Other files are not read."""
    model = model_of(cell_clip=0.123)
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(foreign.options_of(tiny.config(cell_clip=9.0))), "utf8")
    config = foreign_allennlp.config_of(options_file=str(outside))
    folder = foreign_allennlp.write(tmp_path / "m", foreign_allennlp.tagger_of(model), config)
    with pytest.raises(
        ValueError, match=r"outside.json'\), but found none. Give it with options \(`--options`\)"
    ):
        convert(folder)
    path = folder / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(foreign.options_of(model.config)), "utf8")
    weights, notes = convert(folder, options=path if place == "../o.json" else None)
    assert weights.config.cell_clip == 0.123
    assert notes[0] == f"read {folder / 'weights.th'}, {path}"


@pytest.mark.parametrize("prefix", ["", "_elmo_lstm.", "a._elmo_lstm.", "_elmo._elmo_lstm."])
def test_every_prefix(tmp_path, prefix):
    """The prefixes of a plain `_ElmoBiLm`, of a plain `Elmo`, and of an `Elmo` inside a model."""
    model = model_of()
    state = {
        prefix + name.removeprefix("_elmo_lstm."): tensor
        for name, tensor in foreign_allennlp.state_of(model).items()
    }
    options(OPTIONS)(tmp_path)
    torch.save(state, tmp_path / "epoch_3.th")
    assert_same_model(convert(tmp_path / "epoch_3.th")[0], model)
    (tmp_path / "epoch_2.th").touch()
    with pytest.raises(ValueError, match=r"weights.th or best.th.*epoch_2.th, epoch_3.th"):
        convert(tmp_path)
    (tmp_path / "epoch_3.th").rename(tmp_path / "best.th")
    assert_same_model(convert(tmp_path)[0], model)


def test_notes(tmp_path):
    """What is not of the ELMo is left out with a note, a cache of character vectors without one. A layer norm over the
    batch is not computed."""
    state = foreign_allennlp.tagger_of(model_of())
    state[BILM + "_word_embedding.weight"] = torch.ones(4, 5)
    config = foreign_allennlp.config_of(do_layer_norm=True)
    _, notes = convert(foreign_allennlp.write(tmp_path, state, config, OPTIONS))
    assert "left out parameters that are not of the ELMo: tag_projection_layer.weight" in notes
    setting = "model.text_field_embedder.token_embedders.elmo.do_layer_norm = true"
    assert notes[-1].startswith(setting)


OPTIONS = foreign.options_of(tiny.config(max_characters=50))


def state(**changes):
    """Return a function that changes parameters; None removes a parameter."""

    def change(folder):
        tensors = torch.load(folder / "weights.th", weights_only=True)
        for name, tensor in changes.items():
            tensors[name] = tensor
            if tensor is None:
                del tensors[name]
        torch.save(tensors, folder / "weights.th")

    return change


def options(content):
    return lambda folder: (folder / "options.json").write_text(json.dumps(content), "utf8")


DAMAGE = [
    (
        state(**{
            CELL + "input_linearity.weight": None, CELL + "input_linearity.bias": torch.zeros(28),
            CELL + "state_projection.weight": torch.zeros(7, 5),
            PREFIX + "scalar_mix_0.gamma": torch.tensor([np.nan]),
            PREFIX + "scalar_mix_1.scalar_parameters.1": torch.tensor([1]),
            PREFIX + "scalar_mix_1.scalar_parameters.2": None,
        }),
        [
            "  _elmo_lstm.forward_layer_0.input_linearity.bias: unexpected",
            "  _elmo_lstm.forward_layer_0.input_linearity.weight: missing",
            "  _elmo_lstm.forward_layer_0.state_projection.weight: shape [7, 5], expected [5, 7]",
            "scalar_mix_0.gamma: contains values that are not finite",
            "scalar_mix_1.scalar_parameters.1: type int64", "scalar_mix_1.scalar_parameters.2: missing",
        ],
    ),
    (state(**{BILM + allennlp.CHARACTERS: None}), ["but found 0 (tag_projection_layer.weight"]),
    (state(**{"b." + allennlp.CHARACTERS: torch.zeros(262, 3)}), [f"but found 2 ({BILM}, b.)"]),
    (options(changed(OPTIONS, lstm__projection_dim=...)), ["lstm.projection_dim is missing"]),
    (options(changed(OPTIONS, char_cnn=None)), ["char_cnn is missing"]),
    (options(changed(OPTIONS, lstm__use_skip_connections=False)), ["use_skip_connections must be true"]),
    (options(changed(OPTIONS, lstm__n_layers=999)), ["state_linearity.bias: missing", "and 9920 more"]),
    (
        lambda folder: (folder / "my_options.json").write_text("{}"),
        ["found my_options.json, options.json", "--options"],
    ),
    (lambda folder: (folder / "config.json").write_text("{"), ["config.json is not valid JSON"]),
    (lambda folder: (folder / "weights.th").write_bytes(b""), ["weights.th is not a file of torch.save"]),
    (state(**{BILM + allennlp.CHARACTERS: torch.zeros(261, 3)}), ["expected [262, 3]"]),
]  # fmt: skip


@pytest.mark.parametrize("damage, fragments", DAMAGE)
def test_damage(tmp_path, damage, fragments):
    foreign_allennlp.write_model(tmp_path, model_of(), MIXES)
    damage(tmp_path)
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    for fragment in [str(tmp_path), *fragments]:
        assert fragment in str(error.value)


@pytest.mark.parametrize(
    "mixes",
    [
        3,
        [1],
        [{"weights": [0, 0, 0]}],
        [{"weights": [0, 0, "x"], "gamma": 1}],
        [{"weights": [0, 0], "gamma": 1}],
    ],
)
def test_export_of_damaged_mixes(tmp_path, mixes):
    weights = Weights.from_bilm(model_of(), card={"scalar_mixes": mixes})
    with pytest.raises(ValueError, match="scalar_mixes in the card must be a list of .* 3 numbers"):
        export(weights, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "fields, problems",
    [
        ({"skip": False}, ["skip = false"]),
        ({"dim": 5}, ["dim = projection = 5"]),
        ({"filters": ((1, 5),)}, ["filters = projection = 5"]),
        ({"max_characters": 12}, ["max_characters = 12"]),
        ({"unicode_form": "NFC"}, ["spelling"]),
        ({"n_words": 8}, ["only input is the bytes of a word"]),
        ({"n_words": 8, "skip": False, "dim": 5}, ["only input", "skip", "dim"]),
    ],
)
def test_export_of_what_allennlp_lacks(fields, problems):
    weights = Weights.from_bilm(model_of(**fields), vocabulary=tiny.VOCABULARY)
    with pytest.raises(ValueError, match="AllenNLP does not support this biLM") as error:
        state_of(weights)
    lines = str(error.value).split("\n")[1:]
    assert all(problem in line for problem, line in zip(problems, lines, strict=True))
