"""The tables of docs/languages.md say what cards and reports say."""

import json

import pytest

from scripts.language_table import choice, reports_of_models, score_rows, tables
from scripts.marked_page import ROOT, renewed
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import training_words, write_package
from tests import tiny

REPORT = """# Title

*Test scores | of all*

| task and data | metric | baseline | elmo | fewer errors |
| --- | --- | ---: | ---: | ---: |
| ner, Pliny | F1 | 80.0 ± 0.1 (3) | 83.0 ± 0.2 (3) | 15.0% |
| ner, Herodotos | F1 | 70.0 ± 0.1 (3) | 76.0 ± 0.2 (3) | 20.0% |

| task and data | seed |
| --- | ---: |
| ner, Herodotos | 0 |
"""


@pytest.fixture
def models(tmp_path):
    for lang in ("grc", "la"):
        card = {"name": f"{lang}_mini", "language": lang, "licence": "CC0 1.0"}
        card |= {"tokens_seen": 21_600_000}
        weights = Weights.from_bilm(tiny.bilm(tiny.config()), card=card)
        write_package(weights, f"{lang}_elmo_mini_v1", tmp_path / "models")
    return tmp_path / "models"


def test_the_page_is_up_to_date():
    page = (ROOT / "docs" / "languages.md").read_text("utf8")
    reports = reports_of_models(ROOT / "evidence" / "plan.yml", ROOT / "evidence" / "report")
    for name, content in (("choice", choice), ("models", tables)):
        assert renewed(page, name, content(ROOT / "models", reports)) == page


def test_figures_that_are_not_there_have_no_column(models, tmp_path):
    written = tables(models, {})
    first, _, greek, latin = written.splitlines()
    assert first == "| model | language | size | training words | licence |"
    assert "| Ancient Greek |" in greek
    assert latin.startswith("| [la_elmo_mini_v1](../models/la_elmo_mini) | Latin | 0.")
    assert latin.endswith(" MB | 22 million | CC0 1.0 |")


def test_training_words_include_those_of_the_initial_weights():
    card = {"tokens_seen": 8, "init": {"tokens_seen": 1, "init": {"tokens_seen": 15}}}
    assert training_words(card) == 24
    assert training_words({}) == 0


def test_scores_and_perplexity_are_those_of_the_evidence(models, tmp_path):
    (tmp_path / "plan.yml").write_text("sizes: {en: {}, la: {weights: la_elmo_mini_v1}}")
    reports = reports_of_models(tmp_path / "plan.yml", tmp_path)
    report = tmp_path / "la"
    report.mkdir()
    (report / "report.md").write_text(REPORT, "utf8")
    measured = {"name": "la_mini", "order": 5, "vocab_size": 100_000, "kneser_ney": 400.0}
    measured |= {"forward": 300.0, "unk_share": 0.0741}
    (report / "kneser_ney.json").write_text(json.dumps(measured))
    written = tables(models, reports)
    assert "| 100,000 | 7.4% | 300.0 | 400.0 | 25% |" in written
    assert choice(models, reports).splitlines() == [
        "| language | install | lower perplexity | fewer NER errors |",
        "| --- | --- | --- | --- |",
        "| Ancient Greek | `pip install models/grc_elmo_mini` |  |  |",
        "| Latin | `pip install models/la_elmo_mini` | 25% | 15.0 to 20.0% |",
    ]
    assert written.splitlines()[-1] == (
        "| [la_elmo_mini](../evidence/report/la/report.md) | ner, Herodotos | F1 | 70.0 ± 0.1 (3) | 76.0 ± 0.2 (3) |"
        " 20.0% |"
    )
    # The first table alone, and none of a language without a report.
    assert len(score_rows(report, "")) == 2 and score_rows(tmp_path, "") == []


def test_without_models_there_is_a_sentence(tmp_path):
    assert tables(tmp_path, {}) == "No model of another language is in this repository yet."


def test_perplexities_of_another_model_are_left_out(models, tmp_path):
    (tmp_path / "kneser_ney.json").write_text(json.dumps({"name": "la_base", "forward": 300.0}))
    assert "Kneser-Ney" not in tables(models, {"la_elmo_mini_v1": tmp_path})
