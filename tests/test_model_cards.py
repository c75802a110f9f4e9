"""The cards of the models: the metadata that programs read agree with the tables, the weights and the reports."""

from pathlib import Path

import pytest
import srsly

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
