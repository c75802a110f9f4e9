"""The cards of the models: the metadata that programs read agree with the tables, the weights and the reports."""

from pathlib import Path

import pytest
import srsly

from scripts import model_cards, tables
from scripts.model_cards import cards
from spacy_elmo.bilm.weights import Weights
from tests import packages

ROOT = Path(__file__).parent.parent
BUNDLED = sorted((ROOT / "spacy_elmo" / "weights").glob("*.md"))
PACKAGED = [package / "README.md" for package in packages.WEIGHTS]


def weights_of(card):
    """Return the weights file that a card describes."""
    if card in BUNDLED:
        return card.with_suffix(".safetensors")
    (file,) = card.parent.glob("*/*.safetensors")
    return file


def metadata(card):
    return srsly.yaml_loads(card.read_text("utf8").split("---\n")[1])


def test_the_cards_have_the_scores_of_today():
    for path, content in cards():
        assert path.read_text("utf8") == content, f"{path}: run make tables"


@pytest.mark.parametrize("card", [*BUNDLED, *PACKAGED], ids=lambda card: str(card.parent.name))
def test_metadata_are_those_of_the_weights(card):
    data, of_file = metadata(card), Weights.load_card(weights_of(card))
    (index,) = data["model-index"]
    assert index["name"] == weights_of(card).stem
    assert data["language"] == of_file["language"]
    named = data.get("license_name") or data["license"].upper()
    assert named.replace("-", " ") == of_file["licence"].replace("-", " ")
    (perplexity,) = [
        result["metrics"][0]["value"]
        for result in index["results"]
        if result["metrics"][0]["type"] == "perplexity"
    ]
    assert perplexity == round(of_file["perplexity"]["mean"], 1)


TABLES = srsly.read_yaml(ROOT / "evidence" / "tables.yml")
FROM_TREEBANKS = [package for package in packages.PIPELINES if f"{package.name}_scores" in TABLES]


@pytest.mark.parametrize("package", FROM_TREEBANKS, ids=lambda package: package.name)
def test_a_pipeline_has_the_scores_of_the_table(package):
    """`score` of the project has written those of the meta, and the first system of the table is the pipeline."""
    settings = TABLES[f"{package.name}_scores"]
    system, *_ = settings["show"]["system"]
    cells = tables.cells_of(settings)
    performance = srsly.read_json(package / package.name / "meta.json")["performance"]
    assert {"plain text", "gold words"} <= set(performance)
    for given, scores in performance.items():
        assert cells[given, system] == {
            name: [score] for name, score in scores.items() if name != "tokens"
        }


@pytest.mark.parametrize(
    ("ours", "first"),
    [
        # As far as the rule allows, by the numbers of the table, not by their binary fractions.
        ({"UPOS": 92.82, "LAS": 73.02}, ""),
        ({"UPOS": 99.0, "LAS": 99.0}, ""),
        ({"UPOS": 92.72, "LAS": 73.02}, "Below UDPipe 2 from plain text, by 1.6 points (UPOS). "),
        ({"UPOS": 99.0, "LAS": 72.9}, "Below UDPipe 2 from plain text, by 5.1 points (LAS). "),
        (
            {"UPOS": 91.32, "LAS": 60.02},
            "Below UDPipe 2 from plain text, by 3.0 points (UPOS) and 18.0 points (LAS). ",
        ),
    ],
)
def test_the_files_of_a_pipeline(ours, first, tmp_path, monkeypatch):
    """The first line of its card says that it is far below UDPipe 2 from plain text; gold words do not count."""
    folder = tmp_path / "models/xx_elmo_tiny/xx_elmo_tiny/xx_elmo_tiny-0.1.0"
    meta = {
        "lang": "xx",
        "name": "elmo_tiny",
        "version": "0.1.0",
        "spacy_version": ">=3.8.0,<3.9.0",
        "license": "CC BY-SA 4.0, public domain",
        "requirements": ["ufal.udpipe>=1.4,<2"],
        "labels": {"tagger": ["A", "B"]},
        "performance": {"plain text": ours},
    }
    card = {
        "description": 'A "tiny" one.',
        "notes": "<!-- table xx_elmo_tiny_scores -->\n<!-- end -->",
    }
    runs = [
        {"system": "ours", "input": "plain text", "scores": ours},
        {"system": "udpipe", "input": "plain text", "scores": {"UPOS": 94.32, "LAS": 78.02}},
        {"system": "udpipe", "input": "gold words", "scores": {"UPOS": 100, "LAS": 100}},
    ]
    scores, cards = tmp_path / "evidence/scores", tmp_path / "models/cards"
    for parent in (folder, scores, cards):
        parent.mkdir(parents=True)
    srsly.write_json(folder / "meta.json", meta)
    srsly.write_json(cards / "xx_elmo_tiny.json", card)
    srsly.write_jsonl(scores / "runs.jsonl", runs)
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(model_cards, "MODELS", tmp_path / "models")
    show = {"input": ["plain text", "gold words"], "system": ["ours", "udpipe"]}
    settings = {"of": ["runs"], "rows": ["input", "system"], "show": show}
    files = {
        path.relative_to(folder.parents[1]).as_posix(): text
        for path, text in model_cards.pipeline_files(folder, {"xx_elmo_tiny_scores": settings})
    }
    assert set(files) == {
        "README.md",
        "pyproject.toml",
        "xx_elmo_tiny/__init__.py",
        "xx_elmo_tiny/meta.json",
        "xx_elmo_tiny/xx_elmo_tiny-0.1.0/meta.json",
    }
    assert files["README.md"].startswith(f'{first}A "tiny" one.\n')
    assert f"| plain text | ours | {ours['UPOS']:.1f} |" in files["README.md"]
    assert "| Type | Score |" not in files["README.md"]
    assert srsly.json_loads(files["xx_elmo_tiny/meta.json"])["performance"] == meta["performance"]
    assert f'description = "{first}A \\"tiny\\" one."\n' in files["pyproject.toml"]
    assert 'license = "CC-BY-SA-4.0 AND LicenseRef-public-domain"\n' in files["pyproject.toml"]
