"""Write the tables of docs/languages.md from the packages in models/ and the reports in evidence/report.

    python -m scripts.language_table            # writes the tables
    python -m scripts.language_table --check    # fails if the page has other tables

A table has only columns for which at least one model has a value. The report of a model is the report of
the size in evidence/plan.yml that has the weights of this model.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import spacy
import srsly

from scripts.marked_page import ROOT, Row, renew, table
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import training_words

_NONE = "No model of another language is in this repository yet."
_PERPLEXITIES = (
    "Perplexity is measured on held-out text of the same sources, with `<UNK>` as one class"
    " (`python -m benchmarks.kneser_ney`). Each model card has the perplexity of the first 50,000 words of this text."
)
_SCORES = (
    "The baseline uses hash embeddings. The next columns add floret vectors of the same text, ELMo, or both. The"
    " cells show test score ± standard deviation (number of seeds). The last column is the percentage of the"
    " baseline's errors that ELMo removes."
)
_TASKS = {"ner": "fewer NER errors", "tagger": "fewer tagging errors"}
"""Mapping from the component in a row of a report to a column of the table `choice`."""


def model_row(weights: Path, report: Path | None) -> Row:
    """Return the row of a packaged model in the first table.

    Args:
        weights: the weights file of the model.
        report: folder of its report. The file `kneser_ney.json` in this folder is used if it names this model.
    """
    card = Weights.load_card(weights)
    row = {
        "model": f"[{weights.stem}](../models/{weights.parts[-3]})",
        "language": language_name(card["language"]),
        "size": f"{weights.stat().st_size / 1e6:.1f} MB",
        "training words": f"{words / 1e6:.0f} million" if (words := training_words(card)) else "",
        "licence": card["licence"],
    }
    measured = report and report / "kneser_ney.json"
    perplexity = json.loads(measured.read_text("utf8")) if measured and measured.is_file() else {}
    if perplexity and perplexity["name"] == card.get("name"):
        less = 1 - perplexity["forward"] / perplexity["kneser_ney"]
        row |= {
            "classes": f"{perplexity['vocab_size']:,}",
            "`<UNK>`": f"{perplexity['unk_share']:.1%}",
            "perplexity, forward": f"{perplexity['forward']:.1f}",
            f"Kneser-Ney {perplexity['order']}-gram": f"{perplexity['kneser_ney']:.1f}",
            "lower by": f"{less:.0%}",
        }
    return row


def language_name(code: str) -> str:
    """Return the English name of a language, such as Ancient Greek for `grc`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", spacy.util.get_lang_class(code).__name__)


def reports_of_models(plan: Path, reports: Path) -> dict[str, Path]:
    """Return the folder of the report of each model by the name of its weights.

    Args:
        plan: evidence/plan.yml.
        reports: evidence/report.
    """
    sizes = srsly.read_yaml(plan)["sizes"]
    return {size["weights"]: reports / name for name, size in sizes.items() if "weights" in size}


def score_rows(report: Path | None, model: str) -> list[Row]:
    """Return the rows of the first table in a report of the evidence; an empty list if there is no report."""
    page = report and report / "report.md"
    if not page or not page.is_file():
        return []
    lines = iter(page.read_text("utf8").splitlines())
    columns = next((_cells(line) for line in lines if line.startswith("| task and data |")), [])
    next(lines, "")
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append({"model": model, **dict(zip(columns, _cells(line), strict=True))})
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def choice(models: Path, reports: Mapping[str, Path]) -> str:
    """Return the table by which readers choose a model: the command that installs it, and the gains to expect."""
    rows: list[Row] = []
    for file in sorted(models.glob("*/*/*.safetensors")):
        report = reports.get(file.stem)
        row = {
            "language": language_name(Weights.load_card(file)["language"]),
            "install": f"`pip install models/{file.parts[-3]}`",
            "lower perplexity": model_row(file, report).get("lower by", ""),
        }
        for task, column in _TASKS.items():
            removed = [
                float(scores["fewer errors"].rstrip("%"))
                for scores in score_rows(report, "")
                if scores["task and data"].startswith(task)
            ]
            ends = sorted({min(removed), max(removed)}) if removed else []
            row[column] = " to ".join(map(str, ends)) + "%" * bool(ends)
        rows.append(row)
    return table(rows)


def tables(models: Path, reports: Mapping[str, Path]) -> str:
    """Return the tables with all results."""
    files = sorted(models.glob("*/*/*.safetensors"))
    if not files:
        return _NONE
    rows, scores = [], []
    for file in files:
        report = reports.get(file.stem)
        rows.append(model_row(file, report))
        if report:
            link = f"[{file.parts[-3]}](../evidence/report/{report.name}/report.md)"
            scores += score_rows(report, link)
    parts = [table(rows)]
    if any("classes" in row for row in rows):
        parts.append(_PERPLEXITIES)
    if scores:
        parts += [_SCORES, table(scores)]
    return "\n\n".join(parts)


def main() -> None:
    """Write the tables into the page, or check that it has them."""
    evidence = ROOT / "evidence"
    reports = reports_of_models(evidence / "plan.yml", evidence / "report")
    for name, content in (("choice", choice), ("models", tables)):
        renew(ROOT / "docs" / "languages.md", name, content(ROOT / "models", reports), __doc__)


if __name__ == "__main__":
    main()
