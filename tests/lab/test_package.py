"""Packages of weights: their files, their model card, and what an installed package can be used for."""

import shutil
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import spacy
import srsly
import torch
from thinc.api import Config

from spacy_elmo import weight_names
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.spelling import BOS, EOS, UNK
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import head_file, write_package
from spacy_elmo.weight_names import default_weights, find_weights, known_names
from tests import tiny

NAME = "la_elmo_tiny_v2"
CARD = {"language": "la", "licence": "CC BY-SA 4.0", "sources": ["a book", "another one"]}


@pytest.fixture
def weights():
    return Weights.from_bilm(tiny.bilm(tiny.config()), card=CARD)


@pytest.fixture
def package(weights, tmp_path):
    return write_package(weights, NAME, tmp_path)


@pytest.fixture
def installed(package, monkeypatch):
    """The package as if pip had installed it: Python can import it, and lists its entry point."""
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "la_elmo_tiny", raising=False)
    point = EntryPoint(NAME, "la_elmo_tiny:BILM", weight_names.ENTRY_POINTS)
    monkeypatch.setattr(
        weight_names, "entry_points", lambda group, name=NAME: [point] if name == NAME else []
    )
    return package / "la_elmo_tiny" / f"{NAME}.safetensors"


def test_content(package, weights):
    files = sorted(str(path.relative_to(package)) for path in package.rglob("*") if path.is_file())
    assert files == [
        "README.md", "la_elmo_tiny/__init__.py", f"la_elmo_tiny/{NAME}.safetensors", "pyproject.toml",
    ]  # fmt: skip
    packaged = Weights.load(package / "la_elmo_tiny" / f"{NAME}.safetensors")
    assert packaged.card == CARD and packaged.build_head() is None
    for name, tensor in weights.without_head().tensors.items():
        assert torch.equal(packaged.tensors[name], tensor.half())
    readme = (package / "README.md").read_text("utf8")
    assert "| licence | CC BY-SA 4.0 |" in readme and "\n* a book\n* another one\n" in readme


def test_the_head_is_a_file_beside_the_package(weights, tmp_path):
    with pytest.raises(ValueError, match="have no head"):
        write_package(weights, NAME, tmp_path, head=True)
    assert not list(tmp_path.iterdir())
    words = [BOS, EOS, UNK, "arma"]
    head = Head(len(words), weights.config.projection)
    whole = Weights.from_bilm(weights.build_bilm(), head, vocabulary=words, card=CARD)
    package = write_package(whole, NAME, tmp_path, head=True)
    path = head_file(NAME, tmp_path)
    assert path == tmp_path / f"{NAME}_with_head.safetensors"
    shutil.rmtree(package)
    with pytest.raises(FileExistsError, match="with_head.safetensors exists"):
        write_package(whole, NAME, tmp_path, head=True)
    write_package(whole, NAME, tmp_path, head=True, force=True)
    written = Weights.load(path)
    assert (written.vocabulary, written.card) == (words, CARD)
    for name, tensor in head.state_dict().items():
        assert torch.equal(written.build_head().state_dict()[name], tensor.half().float())
    # Its vectors are those of the package.
    packaged = Weights.load(package / "la_elmo_tiny" / f"{NAME}.safetensors")
    for name, tensor in packaged.tensors.items():
        assert torch.equal(written.tensors[name], tensor)


def test_installed_weights_are_known_by_name(installed):
    assert NAME in known_names()
    assert find_weights(NAME) == installed
    assert default_weights("la") == NAME
    assert default_weights("en") == weight_names.DEFAULT_WEIGHTS


def test_the_language_takes_its_installed_biLM(installed):
    """The config of the pipeline names it, so that a saved pipeline does not depend on what is installed."""
    nlp = spacy.blank("la")
    nlp.add_pipe("elmo")
    assert nlp.config["components"]["elmo"]["weights"] == NAME
    named = spacy.blank("la")
    named.add_pipe("elmo", config={"weights": str(installed)})
    text = "Gallia est omnis divisa"
    np.testing.assert_array_equal(nlp(text)._.elmo, named(text)._.elmo)
    again = spacy.util.load_model_from_config(
        Config().from_str(nlp.config.to_str()), auto_fill=True
    )
    assert again.get_pipe_config("elmo")["weights"] == NAME


@pytest.mark.parametrize(
    "lang, advice",
    [
        ("la", "models/la_elmo_base.*pretrain"),
        ("de", "models/de_elmo_mini.*pretrain"),
        ("xx", "docs/languages.md.*pretrain"),
        ("pt", "spacy elmo download"),  # public models
    ],
)
def test_a_language_without_weights_is_an_error_at_add_pipe(lang, advice, monkeypatch):
    # Packages of models/ may be installed where the tests run.
    monkeypatch.setattr(weight_names, "entry_points", lambda **group: [])
    with pytest.raises(ValueError, match=f"language '{lang}' is installed.*{advice}"):
        spacy.blank(lang).add_pipe("elmo")


def test_a_damaged_package_is_named(installed, monkeypatch):
    (installed.parent / "__init__.py").write_text("BILM = {}", encoding="utf8")
    with pytest.raises(ValueError, match="package of the weights 'la_elmo_tiny_v2'.*is damaged"):
        find_weights(NAME)
    # It is loaded only for its own weights, so it hinders no others.
    assert NAME in known_names()
    assert find_weights(str(installed)) == installed


def install(monkeypatch, folder, languages):
    """List entry points of packages in the form {name: language}; the language is None for a damaged package."""
    for name, lang in languages.items():
        declared = {"language": lang, "path": f"{name}.safetensors"} if lang else {}
        (folder / f"module_{name}.py").write_text(f"BILM = {declared}", encoding="utf8")
    monkeypatch.syspath_prepend(str(folder))
    points = [
        EntryPoint(name, f"module_{name}:BILM", weight_names.ENTRY_POINTS) for name in languages
    ]
    monkeypatch.setattr(
        weight_names,
        "entry_points",
        lambda group, name=None: [point for point in points if name in (None, point.name)],
    )


@pytest.mark.parametrize(
    "languages, default",
    [
        ({"la_elmo_v9": "la", "la_elmo_v10": "la", "la_elmo_v1": "la"}, "la_elmo_v10"),
        ({"la_elmo_v2": "la", "la_elmo_base_v2": "la"}, "la_elmo_base_v2.* Choose one of them"),
        ({"la_elmo_v2": "la", "mine": "la"}, "mine.* Choose one of them"),
    ],
)
def test_default_of_a_language(tmp_path, monkeypatch, languages, default):
    """The newest version of one model; of several models, one must be named. A damaged package hinders none."""
    install(monkeypatch, tmp_path, {"grc_broken_v1": None, **languages})
    with pytest.warns(UserWarning, match="package of the weights 'grc_broken_v1'.*is damaged"):
        if default in languages:
            assert default_weights("la") == default
        else:
            with pytest.raises(ValueError, match=default):
                default_weights("la")


LICENCES = {
    "CC BY-SA 3.0 US": "LicenseRef-CC-BY-SA-3.0-US",
    "CC0 1.0": "CC0-1.0",
    "cc-by-sa-4.0": "CC-BY-SA-4.0",
    "GPL 2 or later": "LicenseRef-GPL-2-or-later",
    'mine"}\n[project.scripts]\nls = "os:abort': "LicenseRef-mine-project.scripts-ls-os-abort",
}


@pytest.mark.parametrize("licence", LICENCES)
def test_licences_are_spdx_expressions(weights, tmp_path, licence):
    """The licence of a file from a stranger stays text: it adds no lines."""
    weights.card["licence"] = licence
    package = write_package(weights, NAME, tmp_path)
    lines = (package / "pyproject.toml").read_text("utf8").splitlines()
    assert f'license = "{LICENCES[licence]}"' in lines
    assert "[project.scripts]" not in [
        *lines,
        *(package / "README.md").read_text("utf8").splitlines(),
    ]


@pytest.mark.parametrize(
    "name, card, error",
    [
        ("la", {}, "is not a name for packaged weights"),
        ("../la_v1", {}, "is not a name for packaged weights"),
        ("en_mini_v4", {}, "is the name of a bundled biLM"),
        (NAME, {"language": None}, "has no language"),
        (NAME, {"licence": None}, "has no licence"),
        (
            NAME,
            {"language": 'la", "path": print("executed"), "x": "'},
            "not a code of two or three letters",
        ),
        (NAME, {"evaluation": [{"F1": 50}]}, "lacks .*'task'"),
    ],
)
def test_refused(weights, tmp_path, name, card, error):
    weights.card |= card
    with pytest.raises(ValueError, match=error):
        write_package(weights, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_existing_package_is_replaced_only_by_force(package, weights, tmp_path):
    (package / "old.txt").touch()
    with pytest.raises(FileExistsError, match="--force"):
        write_package(weights, NAME, tmp_path)
    write_package(weights, NAME, tmp_path, version="1.0.1", force=True)
    assert not (package / "old.txt").exists()
    assert 'version = "1.0.1"' in (package / "pyproject.toml").read_text("utf8")


def test_model_card(tmp_path):
    """What the cards in models/ (`tests/test_model_cards.py`) do not have."""
    card = {
        "language": "la", "licence": "my: own", "teacher": {"name": "wise", "licence": "CC BY 4.0", "tokens_seen": 7},
        "init": {"tokens_seen": 5000, "init": {"tokens_seen": 2}}, "limits": ["No\nverse."],
        "sources": [{"name": "letters", "license": "CC0\n# 1.0"}, "a book"],
    }  # fmt: skip
    config = tiny.config(unicode_form="NFD", replace={"v": "u", "\u0301": "", "|": "/"})
    weights = Weights.from_bilm(tiny.bilm(config), card=card)
    readme = (write_package(weights, NAME, tmp_path) / "README.md").read_text("utf8")
    for text in (
        "| tokens seen by the initial weights | 5,002 |\n",
        "| teacher | wise, CC BY 4.0 |\n",
        "| NFD, v becomes u, combining acute accent is dropped, \\| becomes / |\n",
        "\n## Limits\n\n* No verse.\n",
        "\n* letters, CC0 # 1.0\n* a book\n",
    ):
        assert text in readme
    metadata = srsly.yaml_loads(readme.split("---\n")[1])
    assert metadata["license_name"] == "my: own" and "model-index" not in metadata
