"""Clusters of mentions become Docs, and bad lines are named."""

import json
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from tasks.coref.annotation import clusters
from tasks.coref.convert import convert

from tests.evidence.folders import EVIDENCE

GOOD = {
    "doc": "a",
    "sentences": [["Ann", "left", "."], ["She", "can't", "sing", "."]],
    "clusters": [[[0, 0, 1, "person"], [1, 0, 1, "person"]]],
    "singletons": [[1, 2, 3, "event"]],
}
BARE = {"sentences": [["Oh", "!"]], "clusters": []}


def write(path, *records):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_documents(tmp_path):
    out = tmp_path / "new" / "a.spacy"
    assert convert(write(tmp_path / "a.jsonl", GOOD, "", BARE), out) == (2, 9, 1, 2)
    first, second = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [token.text for token in first] == [*GOOD["sentences"][0], *GOOD["sentences"][1]]
    assert first.has_unknown_spaces
    assert clusters(first) == [[(0, 1), (3, 4)]]
    assert [span.text for span in first.spans["coref_clusters_1"]] == ["Ann", "She"]
    assert clusters(second) == []


def changed(*mentions):
    return {**GOOD, "clusters": [list(mentions)]}


@pytest.mark.parametrize(
    "line, message",
    [
        ("{'sentences'", " is not valid JSON"),
        ("[]", ": expected {.*TypeError"),
        ({"sentences": [["a"]]}, ": expected {.*KeyError: 'clusters'"),
        (changed([0, 0], [1, 0, 1]), ": expected {.*TypeError"),
        (
            changed([0, 0, 4], [1, 0, 1]),
            r": a mention is \[0, 4\) in sentence 0, which has 3 tok",
        ),
        (
            changed([0, 1, 1], [1, 0, 1]),
            r": a mention is \[1, 1\) in sentence 0, which has 3 tok",
        ),
        (
            changed([2, 0, 1], [1, 0, 1]),
            r": a mention is \[0, 1\) in sentence 2, which is missing",
        ),
        (changed([0, 0, 1]), ": .* is a cluster of 1 mentions"),
        (changed([0, 0, 1], [0, 0, 1]), r": the mention at tokens \[0, 1\) .* occurs twice"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    out = tmp_path / "a.spacy"
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2" + message):
        convert(write(tmp_path / "a.jsonl", GOOD, line), out)
    assert not out.exists()


def test_empty_file(tmp_path):
    with pytest.raises(ValueError, match="a.jsonl has no document"):
        convert(write(tmp_path / "a.jsonl", ""), tmp_path / "a.spacy")


@pytest.mark.slow
def test_command_line(tmp_path):
    command = [
        sys.executable,
        "-m",
        "tasks.coref.convert",
        str(tmp_path / "a.jsonl"),
        str(tmp_path / "a.spacy"),
    ]
    failed = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "a.jsonl" in failed.stderr and "Traceback" not in failed.stderr
    write(tmp_path / "a.jsonl", GOOD, BARE)
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True)
    assert "2 Docs, 9 tokens, 2 mentions in 1 clusters" in done.stdout
