"""Every registered function takes the same options with the same defaults."""

import dataclasses
import inspect

import pytest
import spacy
from spacy.util import registry

from spacy_elmo.pipeline.factory_options import (
    BiLMOptions,
    ElmoOptions,
    default_options,
)
from spacy_elmo.pipeline.listen.scalar_mix import MixOptions
from spacy_elmo.weight_names import DEFAULT_WEIGHTS
from tests import pipelines


def names(options):
    return {field.name for field in dataclasses.fields(options)}


def test_config_has_every_option_with_its_default():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    block = nlp.config["components"]["elmo"]
    expected = default_options(ElmoOptions) | {"weights": DEFAULT_WEIGHTS}
    assert {name: block[name] for name in names(ElmoOptions)} == expected
    assert set(block) == names(ElmoOptions) | {"factory", "model"}


@pytest.mark.parametrize(
    "name, others, classes",
    [
        ("spacy-elmo.ElmoListener.v1", {"width", "upstream"}, [MixOptions]),
        ("spacy-elmo.ElmoTok2Vec.v1", {"bilm", "width"}, [BiLMOptions, MixOptions]),
    ],
)
def test_architectures_take_every_option(name, others, classes):
    parameters = inspect.signature(registry.architectures.get(name)).parameters
    assert set(parameters) == others.union(*map(names, classes))
    for options in classes:
        for option, default in default_options(options).items():
            # A layer does not know the language, so it has no default biLM.
            named = name.endswith("ElmoTok2Vec.v1") and option == "weights"
            assert parameters[option].default == (inspect.Parameter.empty if named else default)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cache_mb": "many"}, "elmo -> cache_mb"),
        ({"wieghts": "x"}, "elmo -> wieghts"),
        ({"frozen": "perhaps"}, "elmo -> frozen"),
        ({"start": "hot"}, "elmo -> start"),
        ({"store": "all"}, "elmo -> store"),
        ({"dtype": "int8"}, "elmo -> dtype"),
        ({"precision": "half"}, "elmo -> precision"),
    ],
)
def test_impossible_options(weights, options, message):
    with pytest.raises(ValueError, match=message):
        pipelines.blank(weights, **options)
