"""Write the tables of docs/languages.md from the cards of the packages in models/ and from the reports of the evidence.

    python scripts/language_table.py            # writes them
    python scripts/language_table.py --check    # is an error if the page has others

A table has the columns that at least one model has a figure for.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import spacy

from spacy_elmo.bilm.weights import Weights

ROOT = Path(__file__).parent.parent
_PLACE = re.compile(r"(<!-- models -->\n).*?(\n<!-- /models -->)", re.DOTALL)
_NONE = "No model of another language is in this repository yet."
_SCORES = (
    "Test scores, as in the report of the language: hash embeddings, with floret vectors of the same text, with"
    " ELMo, with both; ± standard deviation (seeds). The last column is the share of the baseline's errors that ELMo"
    " does without."
)

Row = Mapping[str, str]


def model_row(weights: Path, report: Path) -> Row:
    """Return the facts of a packaged model.

    Args:
        weights: its file.
        report: the folder of the evidence of its language; `kneser_ney.json` in it is optional.
    """
    card = Weights.load_card(weights)
    row = {
        "model": f"[{weights.stem}](../models/{weights.parts[-3]})",
        "language": language_name(card["language"]),
        "size": f"{weights.stat().st_size / 1e6:.1f} MB",
        "words read": f"{card['tokens_seen'] / 1e6:.0f} million" if "tokens_seen" in card else "",
        "licence": card["licence"],
    }
    measured = report / "kneser_ney.json"
    if measured.is_file():
        perplexity = json.loads(measured.read_text("utf8"))
        less = 1 - perplexity["forward"] / perplexity["kneser_ney"]
        row |= {
            "classes": f"{perplexity['vocab_size']:,}",
            "perplexity, forward": f"{perplexity['forward']:.1f}",
            f"Kneser-Ney {perplexity['order']}-gram": f"{perplexity['kneser_ney']:.1f}",
            "less": f"{less:.0%}",
        }
    return row


def language_name(code: str) -> str:
    """Return the English name of a language: `grc` is Ancient Greek."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", spacy.util.get_lang_class(code).__name__)


def score_rows(report: Path, language: str) -> list[Row]:
    """Return the rows of the first table of a report of the evidence; none if there is no report."""
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


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown, without the columns that none of them fills."""
    columns = list(dict.fromkeys(name for row in rows for name, cell in row.items() if cell))
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(name, "") for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def tables(models: Path, reports: Path) -> str:
    """Return what stands between the marks of the page."""
    files = sorted(models.glob("*/*/*.safetensors"))
    if not files:
        return _NONE
    languages = {file: Weights.load_card(file)["language"] for file in files}
    parts = [table([model_row(file, reports / languages[file]) for file in files])]
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


def renewed(page: str, content: str) -> str:
    """Return a page with other content between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    if not _PLACE.search(page):
        raise ValueError("The page has no <!-- models --> and <!-- /models -->")
    return _PLACE.sub(lambda marks: f"{marks[1]}\n{content}\n{marks[2]}", page)


def main() -> None:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    page = ROOT / "docs" / "languages.md"
    before = page.read_text("utf8")
    after = renewed(before, tables(ROOT / "models", ROOT / "evidence" / "report"))
    if args.check and after != before:
        raise SystemExit(f"{page} has other tables: python scripts/language_table.py writes them")
    if not args.check:
        page.write_text(after, "utf8")


if __name__ == "__main__":
    main()
