"""Pages of the docs with a part that a program writes."""

import sys

import pytest

from scripts.marked_page import renew, renewed, table

PAGE = "a\n<!-- models -->\nold\n<!-- /models -->\nb\n"


def test_only_what_is_between_the_marks_changes():
    new = renewed(PAGE, "models", table([{"x": r"\1", "y": ""}]))
    assert new == "a\n<!-- models -->\n\n| x |\n| --- |\n| \\1 |\n\n<!-- /models -->\nb\n"
    assert renewed(new, "models", "c") == "a\n<!-- models -->\n\nc\n\n<!-- /models -->\nb\n"
    with pytest.raises(ValueError, match="no marks <!-- others -->"):
        renewed(PAGE, "others", "b")


def test_a_check_writes_nothing(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr(sys, "argv", ["tables.py", "--check"])
    with pytest.raises(SystemExit, match=r"page.md is out of date: run python -m scripts.tables"):
        renew(page, "models", "new", "about")
    assert page.read_text() == PAGE
    monkeypatch.setattr(sys, "argv", ["tables.py"])
    renew(page, "models", "new", "about")
    assert "\nnew\n" in page.read_text()
    monkeypatch.setattr(sys, "argv", ["tables.py", "--check"])
    renew(page, "models", "new", "about")
