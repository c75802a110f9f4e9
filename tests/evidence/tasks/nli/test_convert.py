"""Pairs become Docs with a line break between both texts, and invalid lines are named."""

import json
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from tasks.nli.convert import convert, main
from tasks.pairs import line_break

from tests.evidence.folders import EVIDENCE

YES = {"premise": "It doesn't\nrain. ", "hypothesis": "It's  dry", "label": "yes", "set": "x"}
NO = {"premise": "Fêté", "hypothesis": "No", "label": "no"}


def write(path, *records):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_pairs(tmp_path):
    out = tmp_path / "new" / "a.spacy"
    assert convert(write(tmp_path / "a.jsonl", YES, "", NO), out) == (2, 12, 2)
    first, second = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    words = ["It", "does", "n't", "rain", ".", "\n", "It", "'s", "dry"]
    assert [token.text for token in first] == words
    assert line_break(first) == 5 and line_break(second) == 1
    assert first.cats == {"yes": 1.0, "no": 0.0}
    assert second.cats == {"yes": 0.0, "no": 1.0}


@pytest.mark.parametrize(
    "line, message",
    [
        ("{'premise'", " is not valid JSON"),
        ("[]", ": expected {.*premise is None"),
        ({**NO, "hypothesis": " "}, ": expected {.*hypothesis is ' '"),
        ({**NO, "label": 1}, ": expected {.*label is 1"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    out = tmp_path / "a.spacy"
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2" + message):
        convert(write(tmp_path / "a.jsonl", NO, line), out)
    assert not out.exists()


def test_empty_file(tmp_path):
    with pytest.raises(ValueError, match="a.jsonl has no pair"):
        convert(write(tmp_path / "a.jsonl", ""), tmp_path / "a.spacy")


def test_error_is_one_message(tmp_path, monkeypatch):
    arguments = [str(tmp_path / "absent.jsonl"), str(tmp_path / "a.spacy")]
    monkeypatch.setattr(sys, "argv", ["convert_nli.py", *arguments])
    with pytest.raises(SystemExit, match=r"absent\.jsonl"):
        main()


@pytest.mark.slow
def test_command_line(tmp_path):
    path = write(tmp_path / "a.jsonl", YES, NO)
    command = [sys.executable, "-m", "tasks.nli.convert", str(path), str(tmp_path / "a.spacy")]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert "2 Docs, 12 tokens, 2 labels" in done.stdout
