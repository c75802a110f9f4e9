"""The configuration rejects impossible values, and a round trip through JSON keeps it."""

import json

import pytest

from spacy_elmo.bilm.config import BiLMConfig


def test_defaults_are_the_published_model():
    config = BiLMConfig()
    assert (config.dim, config.projection, config.layers, config.highways) == (4096, 512, 2, 2)
    assert config.n_filters == 2048
    assert config.width == 1024


def test_round_trip_through_json():
    config = BiLMConfig(dim=8, projection=4, filters=((1, 4), (3, 5)), cell_clip=None, n_words=0)
    again = BiLMConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.filters == ((1, 4), (3, 5))
    assert hash(again) == hash(config)


def test_all_problems_in_one_error():
    with pytest.raises(ValueError) as error:
        BiLMConfig(
            dim=0,
            projection=-1,
            layers=0,
            cell_clip=0,
            proj_clip=-2.0,
            activation="gelu",
            char_dim=0,
            highways=-1,
            max_characters=2,
            filters=((0, 4), (2, 0), (9, 1)),
        )
    for problem in (
        "dim = 0",
        "projection = -1",
        "layers = 0",
        "cell_clip = 0",
        "proj_clip = -2.0",
        "activation = 'gelu' (must be one of relu, tanh)",
        "char_dim = 0",
        "highways = -1",
        "max_characters = 2",
        "(0, 4)",
        "(2, 0)",
        "(9, 1)",
    ):
        assert problem in str(error.value)


@pytest.mark.parametrize(
    "field, value, problem",
    [
        ("dim", 2.5, "dim = 2.5"),
        ("dim", "64", "dim = '64'"),
        ("layers", True, "layers = True"),
        ("layers", None, "layers = None"),
        ("highways", 1.5, "highways = 1.5"),
        ("n_words", -1, "n_words = -1"),
        ("word_dim", 2.5, "word_dim = 2.5"),
        ("word_dim", 3, "word_dim = 3 (must be 0, because n_words = 0)"),
        ("n_symbols", "9", "n_symbols = '9'"),
        ("n_symbols", 5, "n_symbols = 5 (must be 0, or at least 6"),
        ("square_projections", None, "square_projections = None"),
        ("cell_clip", float("nan"), "cell_clip = nan"),
        ("cell_clip", "3", "cell_clip = '3'"),
        ("forget_bias", float("inf"), "forget_bias = inf"),
        ("forget_bias", None, "forget_bias = None"),
        ("skip", "yes", "skip = 'yes'"),
        ("activation", 3, "activation = 3"),
        ("filters", (), "filters"),
        ("filters", 7, "filters = 7"),
        ("filters", ((1, 2, 3),), "filters"),
        ("filters", (("a", 2),), "filters"),
        ("dim", 10**18, "(the limit is 1,000,000)"),
        ("layers", 10**9, "layers = 1000000000 (the limit is 1,000)"),
        ("max_characters", 10**9, "max_characters = 1000000000 (the limit is 1,000)"),
        pytest.param("cell_clip", 10**400, "(the limit is 10,000", id="cell_clip-beyond floats"),
        ("proj_clip", 1e30, "proj_clip = 1e+30 (the limit is 10,000"),
    ],
)
def test_impossible_value_is_named(field, value, problem):
    with pytest.raises(ValueError) as error:
        BiLMConfig(**{field: value})
    assert problem in str(error.value)


def test_character_fields_do_not_matter_for_word_input():
    assert BiLMConfig(n_words=3, filters=(), char_dim=0).n_words == 3


@pytest.mark.parametrize(
    "fields, problem",
    [
        (
            {"n_words": 3, "n_symbols": 9},
            "word_dim = 0 (must be at least 1, because n_words and n_symbols",
        ),
        ({"n_words": 3, "word_dim": 2, "n_symbols": 9, "filters": ()}, "filters = ()"),
        ({"n_words": 3, "word_dim": 2, "max_characters": 6}, "at least 7: <bos> between two"),
        (
            {"n_symbols": 9, "max_characters": 6, "filters": ((1, 2),)},
            "at least 7: <bos> between two",
        ),
    ],
)
def test_words_and_symbols_that_do_not_go_together(fields, problem):
    with pytest.raises(ValueError) as error:
        BiLMConfig(**fields)
    assert problem in str(error.value)


def test_dict_and_header():
    """A header has the names of format 1 for the numbers of rows."""
    config = BiLMConfig(
        n_words=9,
        word_dim=3,
        n_symbols=8,
        square_projections=True,
        unicode_form="NFC",
        replace=(("v", "u"),),
    )
    assert config.to_dict() == vars(config)
    assert BiLMConfig.from_dict(config.to_dict()) == config
    header = config.to_header()
    assert (header["words"], header["symbols"], header["word_dim"]) == (9, 8, 3)
    assert len(header) == len(vars(config)) and not {"n_words", "n_symbols"} & header.keys()
    assert BiLMConfig.from_header(json.loads(json.dumps(header))) == config
    assert BiLMConfig.from_header({"dim": 8}) == BiLMConfig(dim=8)


def test_unknown_field_is_named():
    with pytest.raises(ValueError, match=r"\['dimm'\].*dim, projection, "):
        BiLMConfig.from_dict({"dimm": 3})
