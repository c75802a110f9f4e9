"""The configuration rejects impossible values, and a round trip through JSON keeps it."""

import json

import pytest

from spacy_elmo.bilm.config import BiLMConfig


def test_defaults_are_the_published_model():
    config = BiLMConfig()
    assert (config.dim, config.projection, config.layers, config.highways) == (4096, 512, 2, 2)
    assert (config.n_filters, config.width) == (2048, 1024)


IMPOSSIBLE = [
    {"dim": 0}, {"dim": 2.5}, {"dim": "64"}, {"dim": 10**18}, {"projection": -1}, {"layers": 0}, {"layers": True},
    {"layers": None}, {"layers": 10**9}, {"highways": -1}, {"highways": 1.5}, {"n_words": -1}, {"word_dim": 2.5},
    {"word_dim": 3}, {"n_symbols": "9"}, {"n_symbols": 5}, {"square_projections": None}, {"skip": "yes"}, {"skip": 1},
    {"cell_clip": 0}, {"cell_clip": float("nan")}, {"cell_clip": "3"}, {"cell_clip": 10**400}, {"proj_clip": 1e30},
    {"forget_bias": float("inf")}, {"forget_bias": None}, {"activation": "gelu"}, {"activation": 3}, {"char_dim": 0},
    {"filters": ()}, {"filters": 7}, {"filters": ((1, 2, 3),)}, {"filters": (("a", 2),)}, {"filters": ((0, 4),)},
    {"filters": ((2, 0),)}, {"filters": ((60, 4),)}, {"filters": ((1, 10**6),) * 2},
    {"max_characters": 2, "filters": ((1, 2),)},
    {"max_characters": 10**9}, {"unicode_form": "nfc"}, {"unicode_form": 5}, {"replace": 5}, {"replace": {"v": 5}},
    {"replace": ["vu", "ji"]},
    {"word_dim": 0, "n_words": 3, "n_symbols": 9}, {"filters": (), "n_words": 3, "word_dim": 2, "n_symbols": 9},
    {"max_characters": 6, "n_words": 3, "word_dim": 2},
    {"max_characters": 6, "n_symbols": 9, "filters": ((1, 2),)},
]  # fmt: skip
"""Fields of which the first has an impossible value."""


@pytest.mark.parametrize("fields", IMPOSSIBLE, ids=lambda fields: f"{fields!r:.60}")
def test_impossible_values_are_named(fields):
    (name, value), *_ = fields.items()
    with pytest.raises(ValueError) as error:
        BiLMConfig(**fields)
    value = [*value.items()] if isinstance(value, dict) else value
    assert f"Impossible biLM configuration: {name} = {value!r:.60} (" in str(error.value)
    assert ";" not in str(error.value)


def test_all_problems_in_one_error():
    fields = {"dim": 0, "cell_clip": -2.0, "activation": "gelu", "replace": 5, "unicode_form": "x"}
    with pytest.raises(ValueError) as error:
        BiLMConfig(**fields)
    assert all(f"{name} = {value!r} (" in str(error.value) for name, value in fields.items())
    with pytest.raises(ValueError, match=r"word_dim = 3 .*; filters = .*; char_dim = 0"):
        BiLMConfig(word_dim=3, char_dim=0, filters=())


def test_character_fields_do_not_matter_for_word_input():
    assert BiLMConfig(n_words=3, filters=(), char_dim=0, max_characters=1).n_words == 3


def test_dict_and_header():
    """A header has the names of format 1 for the numbers of rows."""
    config = BiLMConfig(
        n_words=9,
        word_dim=3,
        n_symbols=8,
        filters=[[1, 4], [3, 5]],
        cell_clip=None,
        proj_clip=3,
        unicode_form="NFC",
        replace={"v": "u"},
    )
    assert (config.filters, config.replace) == (((1, 4), (3, 5)), (("v", "u"),))
    assert config.to_dict() == vars(config)
    again = BiLMConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config and hash(again) == hash(config)
    header = config.to_header()
    assert (header["words"], header["symbols"], header["word_dim"]) == (9, 8, 3)
    assert len(header) == len(vars(config)) and not {"n_words", "n_symbols"} & header.keys()
    assert BiLMConfig.from_header(json.loads(json.dumps(header))) == config
    assert BiLMConfig.from_header({"dim": 8}) == BiLMConfig(dim=8)


def test_unknown_field_is_named():
    with pytest.raises(ValueError, match=r"\['dimm'\].*dim, projection, "):
        BiLMConfig.from_dict({"dimm": 3})
