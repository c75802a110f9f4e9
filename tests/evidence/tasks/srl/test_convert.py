"""Predicates and arguments become Docs, and bad lines are named."""

import json
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from tasks.srl.annotation import arguments
from tasks.srl.convert import convert, main

from tests.evidence.folders import EVIDENCE

GOOD = {
    "sent": "1",
    "tokens": ["It", "can't", "rain", "."],
    "predicates": [{"index": 2, "frame": "rain.01", "args": [[0, 1, "ARG1"], [1, 2, "ARGM-MOD"]]}],
}
SILENT = {"tokens": ["Oh", "!"], "predicates": []}


def write(path, *records):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_sentences_with_predicates(tmp_path):
    out = tmp_path / "new" / "a.spacy"
    assert convert(write(tmp_path / "a.jsonl", GOOD, "", SILENT), out) == (1, 1, 2, 1)
    (doc,) = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == GOOD["tokens"]
    assert doc.has_unknown_spaces
    assert [(span.text, span.label_) for span in doc.spans["predicates"]] == [("rain", "rain.01")]
    assert arguments(doc) == {2: [(0, 1, "ARG1"), (1, 2, "ARGM-MOD")]}


def changed(**fields):
    return {**GOOD, "predicates": [{**GOOD["predicates"][0], **fields}]}


@pytest.mark.parametrize(
    "line, message",
    [
        ("{'tokens'", " is not valid JSON"),
        ("[]", ": expected {.*TypeError"),
        ({"tokens": ["a"]}, ": expected {.*KeyError: 'predicates'"),
        (changed(args=[[0, 1]]), ": expected {.*TypeError"),
        (changed(index=4), ": 'rain.01' is at token 4, .* 4 tokens"),
        (changed(args=[[3, 5, "ARG1"]]), r": ARG1 of 'rain.01' is \[3, 5\), .* 4 tokens"),
        (changed(args=[[1, 1, "ARG1"]]), r": ARG1 of 'rain.01' is \[1, 1\), .* 4 tokens"),
        (
            changed(args=[[0, 2, "ARG1"], [1, 2, "ARG0"]]),
            r": ARG0 .* at \[1, 2\) overlaps another",
        ),
    ],
)
def test_bad_lines(tmp_path, line, message):
    out = tmp_path / "a.spacy"
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2" + message):
        convert(write(tmp_path / "a.jsonl", GOOD, line), out)
    assert not out.exists()


def test_empty_file(tmp_path):
    with pytest.raises(ValueError, match="a.jsonl has no sentence"):
        convert(write(tmp_path / "a.jsonl", ""), tmp_path / "a.spacy")


def test_error_is_one_message(tmp_path, monkeypatch):
    arguments = [str(tmp_path / "absent.jsonl"), str(tmp_path / "a.spacy")]
    monkeypatch.setattr(sys, "argv", ["convert", *arguments])
    with pytest.raises(SystemExit, match=r"absent\.jsonl"):
        main()


@pytest.mark.slow
def test_command_line(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD, SILENT)
    command = [sys.executable, "-m", "tasks.srl.convert", str(path), str(tmp_path / "a.spacy")]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert "1 Docs, 1 predicates, 2 arguments; 1 sentences without" in done.stdout
