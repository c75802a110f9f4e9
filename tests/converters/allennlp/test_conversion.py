"""Conversion of trained AllenNLP models and export to AllenNLP, with generated files, and every error.

`test_against_allennlp.py` compares both with AllenNLP itself.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.allennlp import options
from spacy_elmo.converters.allennlp.conversion import convert
from spacy_elmo.converters.allennlp.export import export, state_of
from spacy_elmo.converters.allennlp.files import TrainedModel, recognize
from tests import tiny
from tests.converters import foreign, foreign_allennlp

BILM = foreign_allennlp.PREFIX + "_elmo_lstm."
CELL = BILM + "_elmo_lstm.forward_layer_0."
SENTENCES = [["a", "cat"], ["extraordinarily", "鳥", "</S>"]]
MIXES = [([0.5, -1.25, 2.0], 1.5), ([0.0, 0.0, 0.0], 1.0)]


def model_of(seed=0, **fields):
    return tiny.bilm(tiny.config(**({"max_characters": 50} | fields)), seed)


def assert_same_model(weights, model):
    """Assert that two models compute the same, wherever the forget bias is added."""
    ours, theirs = weights.config, model.config
    assert dataclasses.replace(ours, forget_bias=theirs.forget_bias) == theirs
    assert ours.forget_bias == 0.0
    layers = [tiny.read(bilm, SENTENCES).layers for bilm in (weights.build_bilm(), model)]
    assert torch.equal(*layers)


@pytest.mark.parametrize("highways", [0, 2])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("clip", [None, 0.25])
@pytest.mark.parametrize("forget_bias", [1.0, 0.0])
def test_every_shape_of_a_model(tmp_path, highways, layers, clip, forget_bias):
    model = model_of(
        highways=highways, layers=layers, cell_clip=clip, proj_clip=clip, forget_bias=forget_bias
    )
    weights = convert(foreign_allennlp.write_model(tmp_path, model)).weights
    assert_same_model(Weights.from_bytes(weights.to_bytes()), model)


@pytest.mark.parametrize("dim, filters", [(5, ((1, 3), (2, 4))), (7, ((1, 2), (2, 3))), (5, ((5, 5),))])  # fmt: skip
def test_projections_where_the_sizes_agree(tmp_path, dim, filters):
    model = model_of(dim=dim, filters=filters, square_projections=True)
    assert_same_model(convert(foreign_allennlp.write_model(tmp_path, model)).weights, model)


def test_mixes(tmp_path):
    """The mixes are stored unchanged in the card, and exported again."""
    model = model_of()
    conversion = convert(foreign_allennlp.write_model(tmp_path / "in", model, MIXES))
    names = [f"{foreign_allennlp.PREFIX}scalar_mix_{k}" for k in (0, 1)]
    expected = [
        {"name": name, "weights": weights, "gamma": gamma}
        for name, (weights, gamma) in zip(names, MIXES, strict=True)
    ]
    weights = Weights.from_bytes(conversion.weights.to_bytes())
    assert weights.card["scalar_mixes"] == expected
    shown = f"{names[0]}: weights 0.5, -1.25, 2 (before the softmax), gamma 1.5"
    assert shown in conversion.notes
    back = state_of(weights)
    for name, tensor in foreign_allennlp.state_of(model, MIXES).items():
        assert torch.equal(back[name], tensor), name


@pytest.mark.parametrize(
    "name, value",
    [
        ("scalar_mix_0.gamma", torch.tensor([np.nan])),
        ("scalar_mix_0.gamma", torch.zeros(2)),
        ("scalar_mix_0.scalar_parameters.1", torch.tensor([1])),
        ("scalar_mix_0.scalar_parameters.2", None),
    ],
)
def test_damaged_mix(tmp_path, name, value):
    state = foreign_allennlp.tagger_of(model_of(), MIXES)
    del state[foreign_allennlp.PREFIX + name]
    if value is not None:
        state[foreign_allennlp.PREFIX + name] = value
    foreign_allennlp.write(tmp_path, state)
    with pytest.raises(ValueError, match="scalar_mix_0 is not a mix of 3 layers"):
        convert(tmp_path, accept=True)


def test_layer_norm_over_the_batch(tmp_path):
    model = model_of()
    foreign_allennlp.write_model(tmp_path, model, MIXES[:1])
    config = json.dumps(foreign_allennlp.config_of(do_layer_norm=True))
    (tmp_path / "config.json").write_text(config, "utf8")
    setting = "model.text_field_embedder.token_embedders.elmo.do_layer_norm = true"
    with pytest.raises(ValueError, match=f"{setting}.*whole batches.*--accept"):
        convert(tmp_path)
    conversion = convert(tmp_path, accept=True)
    assert any(setting in note for note in conversion.notes)
    assert_same_model(conversion.weights, model)


@pytest.mark.parametrize("place", ["fta", "named", "only", "given"])
def test_where_the_options_are(tmp_path, place):
    """Options may be packed under their setting or their path, be the only JSON file, or be passed explicitly."""
    model = model_of(cell_clip=0.123)
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(foreign.options_of(tiny.config(cell_clip=9.0))), "utf8")
    config = foreign_allennlp.config_of(options_file="elmo/o.json" if place == "named" else str(outside))  # fmt: skip
    folder = foreign_allennlp.write(tmp_path / "m", foreign_allennlp.tagger_of(model), config)
    setting = "model.text_field_embedder.token_embedders.elmo.options_file"
    file = {"fta": f"fta/{setting}", "named": "elmo/o.json", "only": "a.json", "given": "../o.json"}
    path = folder / file[place]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(foreign.options_of(model.config)), "utf8")
    conversion = convert(folder, options=path if place == "given" else None)
    assert conversion.weights.config.cell_clip == 0.123
    assert conversion.files == [folder / "weights.th", folder / "config.json", path]


def test_options_outside_the_folder_are_not_read(tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(foreign.options_of(tiny.config(cell_clip=9.0))), "utf8")
    for named in (str(outside), "../outside.json"):
        config = foreign_allennlp.config_of(options_file=named)
        state = foreign_allennlp.tagger_of(model_of())
        folder = foreign_allennlp.write(tmp_path / "m", state, config)
        with pytest.raises(ValueError, match=r"outside.json', .*`--options`"):
            convert(folder)
        conversion = convert(folder, accept=True)
        assert conversion.weights.config.cell_clip == 3.0
        assert any(note.startswith("no options file") for note in conversion.notes)
        assert "relu, clips of 3" in conversion.weights.card["assumed_options"]


@pytest.mark.parametrize(
    "name, fields, known",
    [
        ("elmo_2x1024_128_2048cnn_1xhighway_options.json", {}, True),
        ("elmo_2x1024_128_2048cnn_1xhighway_options.json", {"layers": 1}, False),
        ("elmo_2x1024_256_2048cnn_1xhighway_options.json", {"projection": 256}, False),
        ("my_options.json", {}, False),
    ],
)
def test_options_of_a_published_model(monkeypatch, name, fields, known):
    """Missing options are replaced only for models with the published name and the published sizes."""
    config = BiLMConfig(**{"dim": 1024, "projection": 128, "highways": 1} | fields)
    monkeypatch.setattr(options, "_config_of_shapes", lambda state: config)
    path = f"https://host/2x1024/{name}"
    model = TrainedModel(Path("weights.th"), {}, Path("config.json"), {"options_file": path})
    if known:
        result, (note,) = options.config_of(model, {}, accept=False)
        assert (result.cell_clip, result.activation, result.forget_bias) == (3.0, "relu", 0.0)
        assert name in note
    else:
        with pytest.raises(ValueError, match="which is missing"):
            options.config_of(model, {}, accept=False)


def test_several_options(tmp_path):
    folder = foreign_allennlp.write_model(tmp_path, model_of())
    (folder / "second.json").write_bytes((folder / "options.json").read_bytes())
    with pytest.raises(ValueError, match="options.json, second.json. .*`--options`"):
        convert(folder)
    convert(folder, options=folder / "second.json")


@pytest.mark.parametrize("layers, highways", [(1, 0), (3, 2)])
def test_without_options(tmp_path, layers, highways):
    """Sizes are read from the parameters. The other options are assumed as in the published models, with a note."""
    model = model_of(layers=layers, highways=highways, cell_clip=3.0, proj_clip=3.0)
    folder = foreign_allennlp.write(tmp_path, foreign_allennlp.tagger_of(model))
    (tmp_path / "broken.json").write_text("{", "utf8")
    with pytest.raises(ValueError, match="`--options`.*`--accept`"):
        convert(folder)
    conversion = convert(folder, accept=True)
    assert "relu, clips of 3" in conversion.weights.card["assumed_options"]
    assert_same_model(conversion.weights, model)
    assert any("assumed" in note and "clips of 3" in note for note in conversion.notes)


@pytest.mark.parametrize("prefix", ["", "_elmo_lstm.", "a._elmo_lstm.", "_elmo._elmo_lstm."])
def test_every_prefix(tmp_path, prefix):
    """The prefixes of a plain `_ElmoBiLm`, of a plain `Elmo`, and of an `Elmo` inside a model."""
    model = model_of(cell_clip=3.0, proj_clip=3.0)
    state = {
        prefix + name.removeprefix("_elmo_lstm."): tensor
        for name, tensor in foreign_allennlp.state_of(model).items()
    }
    torch.save(state, tmp_path / "epoch_3.th")
    with pytest.raises(ValueError, match="`--options`.*`--accept`"):
        convert(tmp_path / "epoch_3.th")
    assert_same_model(convert(tmp_path / "epoch_3.th", accept=True).weights, model)
    with pytest.raises(ValueError, match=r"weights.th or best.th.* epoch_3.th"):
        convert(tmp_path)


def test_best_when_there_are_no_weights(tmp_path):
    model = model_of()
    folder = foreign_allennlp.write_model(tmp_path, model)
    (folder / "weights.th").rename(folder / "best.th")
    assert_same_model(convert(folder).weights, model)


def test_several_elmos(tmp_path):
    first, second = model_of(0), model_of(1)
    state = foreign_allennlp.tagger_of(first, MIXES[:1], "a._elmo.")
    state |= foreign_allennlp.tagger_of(second, MIXES[1:], "b._elmo.")
    options = foreign.options_of(first.config)
    folder = foreign_allennlp.write(tmp_path, state, options=options)
    with pytest.raises(ValueError) as error:
        convert(folder)
    assert str(error.value).split("\n")[1:] == ["  a._elmo._elmo_lstm", "  b._elmo._elmo_lstm"]
    assert "several ELMos. Choose one with prefix (`--prefix`)" in str(error.value)
    conversion = convert(folder, prefix="b._elmo._elmo_lstm")
    assert_same_model(conversion.weights, second)
    (mix,) = conversion.weights.card["scalar_mixes"]
    assert (mix["name"], mix["weights"]) == ("b._elmo.scalar_mix_0", [0, 0, 0])
    with pytest.raises(ValueError, match="no ELMo with prefix .*'c'"):
        convert(folder, prefix="c")


def test_what_is_left_out_is_said(tmp_path):
    state = foreign_allennlp.tagger_of(model_of())
    state[BILM + "_word_embedding.weight"] = torch.ones(4, 5)
    projection = foreign_allennlp.PREFIX.removesuffix("_elmo.") + "_projection.weight"
    state[projection] = torch.ones(3, 10)
    conversion = convert(foreign_allennlp.write(tmp_path, state), accept=True)
    assert {
        "left out _word_embedding.weight, a cache of the character vectors of 4 words",
        "left out 2 parameters of the model that do not belong to the ELMo",
        f"left out {projection}, which projects the mix of the layers",
    } <= set(conversion.notes)


def test_model_without_elmo(tmp_path):
    foreign_allennlp.write(tmp_path, {"tagger.weight": torch.zeros(2)})
    with pytest.raises(ValueError, match="_char_embedding_weights. .* tagger.weight"):
        convert(tmp_path)


def test_every_mismatch_is_named(tmp_path):
    model = model_of()
    state = foreign_allennlp.tagger_of(model)
    del state[CELL + "input_linearity.weight"]
    state[CELL + "input_linearity.bias"] = torch.zeros(28)
    state[CELL + "state_projection.weight"] = torch.zeros(7, 5)
    options = foreign.options_of(model.config)
    foreign_allennlp.write(tmp_path, state, options=options)
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    first, *problems = str(error.value).split("\n")
    assert first == f"{tmp_path / 'weights.th'} does not fit {tmp_path / 'options.json'}:"
    assert problems == [
        "  _elmo_lstm.forward_layer_0.input_linearity.bias: unexpected",
        "  _elmo_lstm.forward_layer_0.input_linearity.weight: missing",
        "  _elmo_lstm.forward_layer_0.state_projection.weight: shape [7, 5], expected [5, 7]",
    ]


@pytest.mark.parametrize(
    "name, value, problem",
    [
        (CELL + "state_projection.weight", None, "state_projection.weight is missing"),
        (CELL + "state_projection.weight", torch.zeros(3), r"state_projection.weight has the shape \[3\], expected 2"),
        (BILM + "_token_embedder.char_conv_0.weight", None, "char_conv_2.weight: expected|char_conv_0"),
        (BILM + "_token_embedder._char_embedding_weights", torch.zeros(261, 3), r"expected \[262, 3\]"),
        (BILM + "_token_embedder._char_embedding_weights", torch.zeros(262, 0), "char_dim = 0"),
    ],
)  # fmt: skip
def test_damaged_parameters_without_options(tmp_path, name, value, problem):
    state = foreign_allennlp.tagger_of(model_of())
    del state[name]
    if value is not None:
        state[name] = value
    foreign_allennlp.write(tmp_path, state)
    with pytest.raises(ValueError, match=problem) as error:
        convert(tmp_path, accept=True)
    assert "weights.th" in str(error.value)


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"lstm": {"dim": 7}}, "lstm.projection_dim is missing"),
        ({"char_cnn": None}, "char_cnn is missing"),
        ({"lstm": foreign.options_of(tiny.config(skip=False))["lstm"]}, "use_skip_connections must be true"),
        ({"lstm": foreign.options_of(tiny.config(layers=999))["lstm"]}, "contain only"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(tmp_path, change, problem):
    options = foreign.options_of(tiny.config()) | change
    foreign_allennlp.write(tmp_path, foreign_allennlp.tagger_of(model_of()), options=options)
    with pytest.raises(ValueError, match=problem) as error:
        convert(tmp_path)
    assert "options.json" in str(error.value)


@pytest.mark.parametrize("content", ["{", "[]", '{"a":' * 100_000])
def test_damaged_configuration(tmp_path, content):
    folder = foreign_allennlp.write_model(tmp_path, model_of())
    (folder / "config.json").write_text(content, "utf8")
    with pytest.raises(
        ValueError, match="config.json (must contain a JSON object|is not valid JSON)"
    ):
        convert(folder)


def test_bfloat16_and_float16(tmp_path):
    model = model_of()
    state = {name: t.bfloat16() for name, t in foreign_allennlp.tagger_of(model).items()}
    options = foreign.options_of(model.config)
    folder = foreign_allennlp.write(tmp_path, state, options=options)
    weights = convert(folder).weights
    assert torch.equal(
        weights.tensors["encoder.characters"], model.encoder.characters.bfloat16().float()
    )
    halves = convert(folder, dtype=torch.float16).weights.tensors
    assert {tensor.dtype for tensor in halves.values()} == {torch.float16}


def test_recognize(tmp_path):
    assert recognize(tmp_path) is None
    assert recognize(tmp_path / "nowhere") is None
    (tmp_path / "config.json").write_text("{}")
    assert recognize(tmp_path) is None
    (tmp_path / "best.th").write_bytes(b"")
    assert recognize(tmp_path) == "config.json and best.th"
    assert recognize(tmp_path / "best.th") == "best.th is a file of parameters"
    assert recognize(tmp_path / "config.json") is None


@pytest.mark.parametrize(
    "mixes, problem",
    [
        (3, "but is 3"),
        ([1], "must be a list"),
        ([{"weights": [0, 0, 0]}], "must be a list"),
        ([{"weights": [0, 0, "x"], "gamma": 1}], "must be a list"),
        ([{"weights": [0, 0], "gamma": 1}], "must have 3 weights"),
    ],
)
def test_export_of_damaged_mixes(tmp_path, mixes, problem):
    weights = Weights.from_bilm(model_of(), card={"scalar_mixes": mixes})
    with pytest.raises(ValueError, match=f"scalar_mixes in the card .*{problem}"):
        export(weights, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_export_and_back(tmp_path, forget_bias, dtype):
    model = model_of(forget_bias=forget_bias)
    weights = Weights.from_bilm(model, Head(3, 5), vocabulary=["<S>", "</S>", "<UNK>"], dtype=dtype)
    files = export(weights, tmp_path / "out")
    assert files == [tmp_path / "out" / name for name in ("options.json", "weights.th")]
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    assert_same_model(convert(tmp_path / "out").weights, weights.build_bilm())


def test_export_is_what_an_independent_writer_makes():
    model = model_of()
    expected = foreign_allennlp.state_of(model, [([0.0] * 3, 1.0)])
    got = state_of(Weights.from_bilm(model))
    assert got.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(got[name], tensor), name


@pytest.mark.parametrize(
    "fields, problems",
    [
        ({"skip": False}, ["skip = false"]),
        ({"dim": 5}, ["dim = projection = 5"]),
        ({"filters": ((1, 5),)}, ["filters = projection = 5"]),
        ({"max_characters": 12}, ["max_characters = 12"]),
        ({"n_words": 8}, ["only input is the bytes of a word"]),
        ({"n_words": 8, "skip": False, "dim": 5}, ["only input", "skip", "dim"]),
    ],
)
def test_export_of_what_allennlp_lacks(tmp_path, fields, problems):
    weights = Weights.from_bilm(model_of(**fields), vocabulary=tiny.VOCABULARY)
    with pytest.raises(ValueError, match="AllenNLP does not support this biLM") as error:
        export(weights, tmp_path / "out")
    lines = str(error.value).split("\n")[1:]
    assert len(lines) == len(problems)
    assert all(problem in line for problem, line in zip(problems, lines, strict=True))
    assert not (tmp_path / "out").exists()
