"""CONTRIBUTING.md: every path that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (?!I want|-)(.+)\|$",
    PAGE.partition("## I want to change ...")[2].partition("\n## ")[0],
    re.MULTILINE,
)


def paths(row: str) -> list[str]:
    """Return the paths in a row of the table: what is in backticks and has a folder or an ending."""
    return [path for path in re.findall("`([^`]+)`", row) if "/" in path or "." in path]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(" |")[0])
def test_every_path_of_the_table_exists(row):
    named = paths(row)
    assert any(path.startswith("docs/") for path in named)
    assert any(path.startswith("tests/") for path in named)
    missing = [
        path
        for path in named
        if not (ROOT / path).exists() and not (ROOT / "spacy_elmo" / path).exists()
    ]
    assert not missing


def test_the_table_has_a_row_for_each_kind_of_change():
    assert len(ROWS) == 7
