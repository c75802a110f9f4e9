"""Write the tables of docs/languages.md from the cards of the packages in models/ and from the reports of the evidence.

    python -m scripts.language_table            # writes the tables
    python -m scripts.language_table --check    # fails if the page has other tables

A table has only columns for which at least one model has a value.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy

from scripts.marked_page import ROOT, Row, renew, table
from spacy_elmo.bilm.weights import Weights

_NONE = "No model of another language is in this repository yet."
_PERPLEXITIES = (
    "Perplexity is measured on held-out text of the same sources, with `<UNK>` as one class"
    " (`python benchmarks/kneser_ney.py`). Each model card has the perplexity of the first 50,000 words of this text."
)
_SCORES = (
    "The baseline uses hash embeddings. The next columns add floret vectors of the same text, ELMo, or both. The"
    " cells show test score ± standard deviation (number of seeds). The last column is the percentage of the"
    " baseline's errors that ELMo removes."
)
_TASKS = {"ner": "fewer NER errors", "tagger": "fewer tagging errors"}
"""Mapping from the component in a row of a report to a column of the table `choice`."""


def training_words(card: Mapping[str, Any]) -> int:
    """Return the number of training words of a model and of the models that its training started from."""
    return card.get("tokens_seen", 0) + (training_words(card["init"]) if "init" in card else 0)


def model_row(weights: Path, report: Path) -> Row:
    """Return the row of a packaged model in the first table.

    Args:
        weights: the weights file of the model.
        report: folder of the evidence for its language. Its file `kneser_ney.json` is used if it names this model.
    """
    card = Weights.load_card(weights)
    row = {
        "model": f"[{weights.stem}](../models/{weights.parts[-3]})",
        "language": language_name(card["language"]),
        "size": f"{weights.stat().st_size / 1e6:.1f} MB",
        "training words": f"{words / 1e6:.0f} million" if (words := training_words(card)) else "",
        "licence": card["licence"],
    }
    measured = report / "kneser_ney.json"
    perplexity = json.loads(measured.read_text("utf8")) if measured.is_file() else {}
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


def score_rows(report: Path, language: str) -> list[Row]:
    """Return the rows of the first table in a report of the evidence; an empty list if there is no report."""
    page = report / "report.md"
    if not page.is_file():
        return []
    lines = iter(page.read_text("utf8").splitlines())
    columns = next((_cells(line) for line in lines if line.startswith("| task and data |")), [])
    next(lines, "")
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append({"language": language, **dict(zip(columns, _cells(line), strict=True))})
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def choice(models: Path, reports: Path) -> str:
    """Return the table by which readers choose a model: the command that installs it, and the gains to expect."""
    rows: list[Row] = []
    for file in sorted(models.glob("*/*/*.safetensors")):
        code = Weights.load_card(file)["language"]
        row = {
            "language": language_name(code),
            "install": f"`pip install models/{file.parts[-3]}`",
            "lower perplexity": model_row(file, reports / code).get("lower by", ""),
        }
        for task, column in _TASKS.items():
            removed = [
                float(scores["fewer errors"].rstrip("%"))
                for scores in score_rows(reports / code, "")
                if scores["task and data"].startswith(task)
            ]
            ends = sorted({min(removed), max(removed)}) if removed else []
            row[column] = " to ".join(map(str, ends)) + "%" * bool(ends)
        rows.append(row)
    return table(rows)


def tables(models: Path, reports: Path) -> str:
    """Return the tables with all results."""
    files = sorted(models.glob("*/*/*.safetensors"))
    if not files:
        return _NONE
    languages = {file: Weights.load_card(file)["language"] for file in files}
    rows = [model_row(file, reports / languages[file]) for file in files]
    parts = [table(rows)]
    if any("classes" in row for row in rows):
        parts.append(_PERPLEXITIES)
    scores = [
        row
        for code in dict.fromkeys(languages.values())
        for row in score_rows(
            reports / code, f"[{language_name(code)}](../evidence/report/{code}/report.md)"
        )
    ]
    if scores:
        parts += [_SCORES, table(scores)]
    return "\n\n".join(parts)


def main() -> None:
    """Write the tables into the page, or check that it has them."""
    for name, content in (("choice", choice), ("models", tables)):
        written = content(ROOT / "models", ROOT / "evidence" / "report")
        renew(ROOT / "docs" / "languages.md", name, written, __doc__)


if __name__ == "__main__":
    main()
