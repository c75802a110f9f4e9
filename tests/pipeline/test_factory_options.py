"""Options are defined in one place, from which every registered function takes them."""

import ast
import dataclasses
import inspect

import pytest
import spacy
from spacy.util import registry

from spacy_elmo.catalogue.weight_names import DEFAULT_WEIGHTS
from spacy_elmo.pipeline import factory_options as module
from spacy_elmo.pipeline.factory_options import (
    BiLMOptions,
    ElmoOptions,
    default_options,
    flatten_options,
)
from spacy_elmo.pipeline.listen import scalar_mix
from spacy_elmo.pipeline.listen.scalar_mix import MixOptions
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
        ("spacy-elmo.ElmoTok2Vec.v1", {"bilm", "cache_mb"}, [BiLMOptions, MixOptions]),
    ],
)
def test_architectures_take_every_option(name, others, classes):
    parameters = inspect.signature(registry.architectures.get(name)).parameters
    assert set(parameters) == others.union(*map(names, classes))
    for options in classes:
        for option, default in default_options(options).items():
            assert parameters[option].default == default


def test_spacy_validates_types_and_names(weights):
    with pytest.raises(ValueError, match="max_batch_tokens"):
        pipelines.blank(weights, max_batch_tokens="many")
    with pytest.raises(ValueError, match="max_batch_token"):
        pipelines.blank(weights, max_batch_token=5)


def test_flattened_function_gets_its_options():
    @dataclasses.dataclass(frozen=True)
    class Colour:
        red: int = 1
        blue: float = 0.5

    def paint(thing: str, color: Colour) -> tuple[str, Colour]:
        return thing, color

    flat = flatten_options(paint)
    assert flat("wall") == ("wall", Colour())
    assert flat(thing="wall", blue=0.1) == ("wall", Colour(blue=0.1))
    with pytest.raises(TypeError, match="green"):
        flat("wall", green=3)
    with pytest.raises(TypeError, match="thing"):
        flat(red=3)


def test_impossible_options_are_named_together():
    with pytest.raises(ValueError, match=r"precision = 'int4'.*max_batch_tokens = 0.*unfreeze_at"):
        BiLMOptions(precision="int4", max_batch_tokens=0, unfreeze_at=-1)


@pytest.mark.parametrize("source", [module, scalar_mix])
def test_every_option_is_explained(source):
    """A docstring follows each field."""
    classes = [
        node for node in ast.parse(inspect.getsource(source)).body if isinstance(node, ast.ClassDef)
    ]
    assert classes
    for body in (node.body for node in classes):
        for field, text in zip(body, body[1:], strict=False):
            if isinstance(field, ast.AnnAssign):
                assert isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant), (
                    ast.unparse(field)
                )
