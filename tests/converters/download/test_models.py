"""The content of the catalogue of models."""

import json
import re

import pytest

from spacy_elmo.converters.formats import FORMATS
from spacy_elmo.converters.models import FILE, RemoteFile, find_model, known_models

MODELS = known_models()


def test_names_are_unique_and_fit_a_folder():
    assert len(json.loads(FILE.read_text("utf8"))) == len(MODELS)
    for name in MODELS:
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name), name


def test_every_format_can_be_converted():
    assert {model.format for model in MODELS.values()} <= {format.name for format in FORMATS}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_every_model_says_what_is_known(model):
    assert model.licence and model.about
    assert model.source.startswith(("http://", "https://"))
    assert all(re.fullmatch("[a-z]{2,3}", language) for language in model.languages)
    names = [file.name for file in model.files]
    assert names and len(set(names)) == len(names)
    for file in model.files:
        assert file.url.startswith("https://")
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
    if model.format == "bilm-tf":
        assert {"options.json", "checkpoint"} <= set(names)
        assert any(name.endswith(".index") for name in names)
    elif len(names) == 1:
        assert names[0].endswith((".zip", ".tar.gz"))
    else:
        assert any(name.endswith("options.json") for name in names)
        assert any(name.endswith("weights.hdf5") or "weights_" in name for name in names)


def test_forty_four_languages_of_many_langs():
    """The numbers of the files increase in the order of ELMoForManyLangs' language codes."""
    numbers = [
        int(model.files[0].name.removesuffix(".zip"))
        for model in MODELS.values()
        if model.format == "many-langs"
    ]
    assert numbers == list(range(136, 180))
    for name, number in {"ar": 136, "en": 144, "ja": 160, "nl": 164, "nb": 165, "zh": 179}.items():
        assert MODELS[f"many-langs-{name}"].files[0].name == f"{number}.zip"


def test_find_model():
    assert find_model("en-small", MODELS) is MODELS["en-small"]
    with pytest.raises(ValueError, match="'en-smal'. .* en-small"):
        find_model("en-smal", MODELS)
    with pytest.raises(ValueError, match="'xyzzy'. .*.download."):
        find_model("xyzzy", MODELS)


@pytest.mark.parametrize(
    "url, name",
    [
        ("https://host/a/model.zip", "model.zip"),
        ("http://host:8000/model.zip?download=1#top", "model.zip"),
        ("https://host/a/", "a"),
    ],
)
def test_name_of_a_file(url, name):
    assert RemoteFile(url).name == name


@pytest.mark.parametrize("sha256", ["", "00", "g" * 64, "md5:" + "0" * 32, "sha256:" + "0" * 64])
def test_checksums_that_are_none(sha256):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        RemoteFile("https://host/model.zip", sha256)


@pytest.mark.parametrize(
    "url, problem",
    [
        ("ftp://host/model.zip", "is not a URL"),
        ("file:///etc/passwd", "is not a URL"),
        ("https:///model.zip", "is not a URL"),
        ("model.zip", "is not a URL"),
        ("https://host", "contains no file name"),
        ("https://host/", "contains no file name"),
        ("https://host/a/..", "contains no file name"),
    ],
)
def test_addresses_that_are_none(url, problem):
    with pytest.raises(ValueError, match=problem):
        RemoteFile(url)
