"""Packages of weights: their files, and what an installed package can be used for."""

import shutil
import subprocess
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
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.bilm.words.char_ids import BOS, EOS, UNK
from spacy_elmo.pipeline.weights_package import head_file, write_package
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


def test_pip_builds_it(package, tmp_path):
    """The metadata of the wheel: name, licence, and the entry point by which spacy-elmo finds the weights."""
    program = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('out'))"
    (package / "out").mkdir()
    subprocess.run([sys.executable, "-c", program], cwd=package, check=True, capture_output=True)
    (folder,) = (package / "out").glob("*.dist-info")
    metadata = (folder / "METADATA").read_text("utf8")
    assert "Name: la-elmo-tiny" in metadata and "Version: 2.0.0" in metadata
    assert (
        "License-Expression: CC-BY-SA-4.0" in metadata and "Requires-Dist: spacy-elmo" in metadata
    )
    points = (folder / "entry_points.txt").read_text("utf8")
    assert points.split() == ["[spacy_elmo_weights]", NAME, "=", "la_elmo_tiny:BILM"]


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


@pytest.mark.parametrize("lang", ["la", "de", "xx"])
def test_a_language_without_weights_is_an_error_at_add_pipe(lang, monkeypatch):
    # Packages of models/ may be installed where the tests run.
    monkeypatch.setattr(weight_names, "entry_points", lambda **group: [])
    with pytest.raises(
        ValueError, match=f"No biLM for the language '{lang}' is installed.*pretrain"
    ):
        spacy.blank(lang).add_pipe("elmo")


def test_public_models_of_the_language_are_named():
    with pytest.raises(ValueError, match="spacy elmo download"):
        spacy.blank("pt").add_pipe("elmo")


def test_english_is_bundled():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    assert nlp.get_pipe_config("elmo")["weights"] == weight_names.DEFAULT_WEIGHTS


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


def test_a_damaged_package_hinders_no_other_language(tmp_path, monkeypatch):
    install(monkeypatch, tmp_path, {"grc_broken_v1": None, "la_elmo_v1": "la"})
    with pytest.warns(UserWarning, match="package of the weights 'grc_broken_v1'.*is damaged"):
        assert default_weights("la") == "la_elmo_v1"


def test_the_default_is_the_newest_version(tmp_path, monkeypatch):
    names = dict.fromkeys(["la_elmo_v9", "la_elmo_v10", "la_elmo_v1"], "la")
    install(monkeypatch, tmp_path, names)
    assert default_weights("la") == "la_elmo_v10"


@pytest.mark.parametrize("other", ["la_elmo_base_v1", "mine"])
def test_of_several_models_one_must_be_named(tmp_path, monkeypatch, other):
    install(monkeypatch, tmp_path, {"la_elmo_v2": "la", other: "la"})
    with pytest.raises(ValueError, match=f"{other}.* Choose one of them"):
        default_weights("la")


def test_a_name_that_is_not_installed_points_to_its_package():
    with pytest.raises(FileNotFoundError, match="la_elmo_huge_v1.*pip install FOLDER"):
        find_weights("la_elmo_huge_v1")


@pytest.mark.parametrize(
    ("licence", "expression"),
    [
        ("CC BY-SA 3.0 US", "LicenseRef-CC-BY-SA-3.0-US"),
        ("CC0 1.0", "CC0-1.0"),
        ("CC BY-NC-SA 4.0", "CC-BY-NC-SA-4.0"),
        ("cc-by-sa-4.0", "CC-BY-SA-4.0"),
        ("GPL 2 or later", "LicenseRef-GPL-2-or-later"),
        ("自由", "LicenseRef-other"),
    ],
)
def test_licences_are_written_as_python_packages_have_them(weights, tmp_path, licence, expression):
    weights.card["licence"] = licence
    metadata = write_package(weights, NAME, tmp_path) / "pyproject.toml"
    assert f'license = "{expression}"\n' in metadata.read_text("utf8")


@pytest.mark.parametrize("name", ["la", "La_elmo_v1", "la_elmo", "la-elmo-v1", "../la_v1", ""])
def test_impossible_names(weights, tmp_path, name):
    with pytest.raises(ValueError, match="is no name for packaged weights"):
        write_package(weights, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_bundled_names_are_taken(weights, tmp_path):
    with pytest.raises(ValueError, match="is the name of a bundled biLM"):
        write_package(weights, "en_mini_v4", tmp_path)


@pytest.mark.parametrize("field", ["language", "licence"])
def test_the_card_must_name_language_and_licence(weights, tmp_path, field):
    del weights.card[field]
    with pytest.raises(ValueError, match=f"has no {field}"):
        write_package(weights, NAME, tmp_path)


def test_an_existing_package_is_replaced_only_by_force(package, weights, tmp_path):
    (package / "old.txt").touch()
    with pytest.raises(FileExistsError, match="--force"):
        write_package(weights, NAME, tmp_path)
    write_package(weights, NAME, tmp_path, version="1.0.1", force=True)
    assert not (package / "old.txt").exists()
    assert 'version = "1.0.1"' in (package / "pyproject.toml").read_text("utf8")


def test_a_hostile_card_runs_nothing(weights, tmp_path):
    """The card of a file from a stranger stays text in the package: it becomes neither code nor metadata."""
    weights.card["language"] = 'la", "path": print("executed"), "x": "'
    with pytest.raises(ValueError, match="no language code of two or three letters"):
        write_package(weights, NAME, tmp_path)
    weights.card |= {"language": "la", "licence": 'mine"}\n[project.scripts]\nls = "os:abort'}
    folder = write_package(weights, NAME, tmp_path)
    lines = (folder / "pyproject.toml").read_text("utf8").splitlines()
    assert 'license = "LicenseRef-mine-project.scripts-ls-os-abort"' in lines
    assert "[project.scripts]" not in lines
    assert "\n[project.scripts]" not in (folder / "README.md").read_text("utf8")


def test_the_readme_lists_sources_with_their_licences(weights, tmp_path):
    weights.card["sources"] = [{"name": "letters", "license": "CC0\n# 1.0"}, "a book"]
    readme = write_package(weights, NAME, tmp_path) / "README.md"
    assert readme.read_text("utf8").endswith("\n* letters, CC0 # 1.0\n* a book\n")


def test_the_readme_shows_numbers_and_spelling_as_people_read_them(tmp_path):
    config = tiny.config(
        unicode_form="NFD", replace={"v": "u", "\u0301": "", "\u00ad": "", "|": "/"}
    )
    card = CARD | {
        "tokens_seen": 22000921,
        "init": {"tokens_seen": 5000, "init": {"tokens_seen": 2}},
        "teacher": {"name": "wise", "licence": "CC BY 4.0", "tokens_seen": 7},
    }
    weights = Weights.from_bilm(tiny.bilm(config), card=card)
    readme = (write_package(weights, NAME, tmp_path) / "README.md").read_text("utf8")
    assert "| tokens seen | 22,000,921 |\n" in readme
    assert "| tokens seen by the initial weights | 5,002 |\n" in readme
    assert "| teacher | wise, CC BY 4.0 |\n" in readme
    assert (
        "| spelling before reading | NFD, v becomes u, combining acute accent is dropped, soft hyphen is dropped,"
        " \\| becomes / |\n"
    ) in readme
    assert "spelling" not in (
        write_package(
            Weights.from_bilm(tiny.bilm(tiny.config()), card=card), NAME, tmp_path, force=True
        )
        / "README.md"
    ).read_text("utf8")


def test_the_readme_of_a_card_without_sources_ends_with_its_table(weights, tmp_path):
    weights.card.pop("sources")
    readme = (write_package(weights, NAME, tmp_path) / "README.md").read_text("utf8")
    assert "Sources" not in readme and readme.endswith("|\n")


SCORE = {
    "task": "token-classification", "data": "letters | old", "metric": "F1", "without": 50, "with": 62.5, "seeds": 3,
}  # fmt: skip


def test_the_readme_has_evaluation_and_limits_and_metadata_of_them(weights, tmp_path):
    perplexity = {"mean": 72.16, "targets": 1000, "unk_share": 0.031, "vocab_size": 500}
    weights.card |= {"limits": ["No\nverse."], "evaluation": [SCORE], "perplexity": perplexity}
    readme = (write_package(weights, NAME, tmp_path) / "README.md").read_text("utf8")
    assert "\n## Limits\n\n* No verse.\n" in readme
    assert "\n| letters \\| old | F1 | 50.0 | 62.5 | 3 |\n" in readme
    assert "72.2 (1,000 targets, 500 classes, 3.1% of the targets" in readme
    metadata = srsly.yaml_loads(readme.split("---\n")[1])
    assert (metadata["language"], metadata["license"]) == ("la", "cc-by-sa-4.0")
    (index,) = metadata["model-index"]
    assert index["name"] == NAME
    assert [
        (result["task"]["type"], result["dataset"]["type"], result["metrics"])
        for result in index["results"]
    ] == [
        ("token-classification", "letters-old", [{"type": "f1", "value": 62.5}]),
        ("text-generation", "held-out-text", [{"type": "perplexity", "value": 72.2}]),
    ]


def test_a_card_without_results_has_no_index_and_another_licence_its_name(weights, tmp_path):
    weights.card["licence"] = "my: own"
    readme = (write_package(weights, NAME, tmp_path) / "README.md").read_text("utf8")
    metadata = srsly.yaml_loads(readme.split("---\n")[1])
    assert "model-index" not in metadata and "Evaluation" not in readme
    assert (metadata["license"], metadata["license_name"]) == ("other", "my: own")


@pytest.mark.parametrize(
    "field, value, named",
    [
        ("limits", "none", "'none'"),
        ("evaluation", {"F1": 50}, "{'F1': 50}"),
        ("evaluation", ["F1"], "'F1'"),
        ("evaluation", [SCORE | {"with": "62"}], "'62'.* without a valid with\\."),
    ],
)
def test_limits_and_evaluation_of_another_form(weights, tmp_path, field, value, named):
    weights.card[field] = value
    with pytest.raises(ValueError, match=f"{field} of the card is .*{named}"):
        write_package(weights, NAME, tmp_path)
    assert not list(tmp_path.iterdir())
