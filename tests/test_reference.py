"""docs/reference.md: every option of the code is in it, with the default that the code has, and no other."""

import inspect
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.util import registry

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.pretraining.config import PretrainConfig

PAGE = (Path(__file__).parent.parent / "docs" / "reference.md").read_text(encoding="utf-8")
SECTIONS = {
    heading: dict(
        re.findall(r"^\| `(\w+)` \| (`.*?`|\*required\*) \| \S.* \|$", text, re.MULTILINE)
    )
    for heading, text in re.findall(
        r"^##+ `(.+?)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
}
ARCHITECTURES = ["BiLM.v1", "ElmoListener.v1", "ElmoTok2Vec.v1", "ElmoEnhanced.v1"]
ARCHITECTURES += ["BiaffineParser.v1", "BiLSTMEncoder.v1"]
FUNCTIONS = [("misc", f"{getter}.v1") for getter in ("sents", "doc", "windows", "wrapped")]
FUNCTIONS += [("augmenters", "case_and_lines.v1"), ("callbacks", "kernel_products.v1")]
FUNCTIONS += [("tokenizers", "UDPipeTokenizer.v1")]


def shown(default):
    """Return a default as the page writes it."""
    return (
        "*required*"
        if default in (MISSING, inspect.Parameter.empty)
        else f"`{json.dumps(default)}`"
    )


def arguments(function):
    """Return the arguments of a registered function, with their defaults."""
    return {
        name: shown(argument.default)
        for name, argument in inspect.signature(function).parameters.items()
    }


def pretraining_section(name):
    """Return the settings of a section of a pretraining config, with their defaults."""
    section = PretrainConfig.model_fields[name].annotation
    return {name: shown(field.default) for name, field in section.model_fields.items()}


@pytest.mark.parametrize("name", ["biaffine_parser", "elmo", "spacy_conventions"])
def test_component(name):
    import spacy_elmo.components.factories
    import spacy_elmo.pipeline.factories  # noqa: F401

    defaults = Language.get_factory_meta(name).default_config
    assert SECTIONS[name] == {option: shown(default) for option, default in defaults.items()}


@pytest.mark.parametrize(
    "names",
    [
        ("normalizing_lemmatizer", "trainable_lemmatizer"),
        ("lexicon_morphologizer", "morphologizer"),
    ],
)
def test_component_like_one_of_spacy(names):
    nlp = spacy.blank("en")
    ours, theirs = (nlp.get_factory_meta(name).default_config for name in names)
    additional = {name: shown(ours[name]) for name in ours.keys() - theirs.keys()}
    assert SECTIONS[names[0]] == additional
    assert {name: ours[name] for name in theirs} == theirs


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name):
    name = f"spacy-elmo.{name}"
    assert SECTIONS[name] == arguments(registry.architectures.get(name))


@pytest.mark.parametrize(("kind", "name"), FUNCTIONS)
def test_function(kind, name):
    name = f"spacy-elmo.{name}"
    assert SECTIONS[name] == arguments(getattr(registry, kind).get(name))


@pytest.mark.parametrize("name", ["paths", "prepare", "training"])
def test_pretraining(name):
    assert SECTIONS[f"[{name}]"] == pretraining_section(name)


def test_model():
    assert SECTIONS["[model]"] == {field.name: shown(field.default) for field in fields(BiLMConfig)}


def test_nothing_else():
    """The page has no other section, and no row that is missing in the code."""
    names = [f"spacy-elmo.{name}" for name in ARCHITECTURES]
    names += [f"spacy-elmo.{name}" for _, name in FUNCTIONS]
    components = ["biaffine_parser", "elmo", "lexicon_morphologizer", "normalizing_lemmatizer"]
    components.append("spacy_conventions")
    assert set(SECTIONS) == {*components, *names, "[paths]", "[prepare]", "[model]", "[training]"}
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(map(len, SECTIONS.values()))
