"""Labelled JSONL becomes Docs, and bad lines are named."""

import json
import subprocess
import sys

import pytest
import spacy
import tasks.coref.convert
import tasks.nli.convert
import tasks.qa.convert
import tasks.srl.convert
from spacy.tokens import DocBin
from tasks.conversion import arguments as parser
from tasks.conversion import run
from tasks.coref.annotation import clusters
from tasks.pairs import line_break
from tasks.qa.annotation import answer
from tasks.srl.annotation import arguments

from tests.evidence.folders import EVIDENCE

COREF = {
    "doc": "a",
    "sentences": [["Ann", "left", "."], ["She", "can't", "sing", "."]],
    "clusters": [[[0, 0, 1, "person"], [1, 0, 1, "person"]]],
    "singletons": [[1, 2, 3, "event"]],
}
BARE = {"sentences": [["Oh", "!"]], "clusters": []}
YES = {"premise": "It doesn't\nrain. ", "hypothesis": "It's  dry", "label": "yes", "set": "x"}
NO = {"premise": "Fêté", "hypothesis": "No", "label": "no"}
QA = {
    "id": "1",
    "question": " Who\ncame? ",
    "context": "It rained.\nAnna can't sing, so Anna came.",
    "answers": [{"text": "Anna", "start": 31}, {"text": "Anna", "start": 11}],
}
WITHIN = {
    "question": "Can she?",
    "context": "Anna can't sing.",
    "answers": [{"text": "can'", "start": 5}],
}
UNANSWERED = {**QA, "answers": []}
SRL = {
    "sent": "1",
    "tokens": ["It", "can't", "rain", "."],
    "predicates": [{"index": 2, "frame": "rain.01", "args": [[0, 1, "ARG1"], [1, 2, "ARGM-MOD"]]}],
}
SILENT = {"tokens": ["Oh", "!"], "predicates": []}


def write(path, *records):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def converted(task, folder, *records, **options):
    """Return the counts of a converter and the Docs that it has written."""
    out = folder / "new" / "a.spacy"
    convert = getattr(tasks, task).convert.convert
    counts = convert(write(folder / "a.jsonl", *records), out, **options)
    return counts, list(DocBin().from_disk(out).get_docs(spacy.blank("en").vocab))


def test_coref(tmp_path):
    counts, (first, second) = converted("coref", tmp_path, COREF, "", BARE)
    assert counts == (2, 9, 1, 2)
    assert [token.text for token in first] == [*COREF["sentences"][0], *COREF["sentences"][1]]
    assert first.has_unknown_spaces
    assert clusters(first) == [[(0, 1), (3, 4)]]
    assert [span.text for span in first.spans["coref_clusters_1"]] == ["Ann", "She"]
    assert clusters(second) == []


def test_nli(tmp_path):
    counts, (first, second) = converted("nli", tmp_path, YES, "", NO)
    assert counts == (2, 12, 2)
    words = ["It", "does", "n't", "rain", ".", "\n", "It", "'s", "dry"]
    assert [token.text for token in first] == words
    assert line_break(first) == 5 and line_break(second) == 1
    assert first.cats == {"yes": 1.0, "no": 0.0}
    assert second.cats == {"yes": 0.0, "no": 1.0}


def test_qa(tmp_path):
    # can' is not what the tokenizer makes of it: ca, n't.
    counts, (first, second) = converted("qa", tmp_path, QA, "", UNANSWERED, WITHIN)
    assert counts == (2, 26, 1, 1, 0)
    assert first.text == "Who came?\nIt rained.\nAnna can't sing, so Anna came."
    assert line_break(first) == 3 and line_break(second) == 3
    assert (answer(first).text, answer(first).start_char) == ("Anna", 41)
    assert answer(second).text == "can't"


def test_what_another_file_asks_is_left_out(tmp_path):
    # As the Docs have it: whitespace in the question says nothing, every letter of the context counts.
    same = {**QA, "question": "Who came?", "answers": []}
    elsewhere = {**QA, "context": QA["context"] + " "}
    other_question = {**QA, "question": "Who sang?"}
    other = write(tmp_path / "b.jsonl", same, WITHIN)
    records = (QA, elsewhere, UNANSWERED, other_question, QA)
    counts, docs = converted("qa", tmp_path, *records, other=other)
    assert (counts.docs, counts.without, counts.elsewhere) == (2, 1, 2)
    assert [doc.text for doc in docs] == [
        "Who came?\n" + elsewhere["context"], "Who sang?\n" + QA["context"],
    ]  # fmt: skip


def test_srl(tmp_path):
    counts, (doc,) = converted("srl", tmp_path, SRL, "", SILENT)
    assert counts == (1, 1, 2, 1)
    assert [token.text for token in doc] == SRL["tokens"]
    assert doc.has_unknown_spaces
    assert [(span.text, span.label_) for span in doc.spans["predicates"]] == [("rain", "rain.01")]
    assert arguments(doc) == {2: [(0, 1, "ARG1"), (1, 2, "ARGM-MOD")]}


def mentions(*found):
    return {**COREF, "clusters": [list(found)]}


def predicate(**fields):
    return {**SRL, "predicates": [{**SRL["predicates"][0], **fields}]}


@pytest.mark.parametrize(
    "task, good, line, message",
    [
        ("coref", COREF, "{'sentences'", " is not valid JSON"),
        *(("coref", COREF, line, message) for line, message in [
            ("[]", ": expected {.*TypeError"),
            ({"sentences": [["a"]]}, ": expected {.*KeyError: 'clusters'"),
            (mentions([0, 0], [1, 0, 1]), ": expected {.*TypeError"),
            (mentions([0, 0, 4], [1, 0, 1]), r": a mention is \[0, 4\) in sentence 0, which has 3 tok"),
            (mentions([0, 1, 1], [1, 0, 1]), r": a mention is \[1, 1\) in sentence 0, which has 3 tok"),
            (mentions([2, 0, 1], [1, 0, 1]), r": a mention is \[0, 1\) in sentence 2, which is missing"),
            (mentions([0, 0, 1]), ": .* is a cluster of 1 mentions"),
            (mentions([0, 0, 1], [0, 0, 1]), r": the mention at tokens \[0, 1\) .* occurs twice"),
        ]),
        *(("nli", NO, line, message) for line, message in [
            ("[]", ": expected {.*premise is None"),
            ({**NO, "hypothesis": " "}, ": expected {.*hypothesis is ' '"),
            ({**NO, "label": 1}, ": expected {.*label is 1"),
        ]),
        *(("qa", QA, line, message) for line, message in [
            ("[]", ": expected {.*TypeError"),
            ({"question": "Who?", "context": "Anna."}, ": expected {.*KeyError: 'answers'"),
            ({**QA, "question": None}, ": expected {.*AttributeError"),
            ({**QA, "answers": ["Anna"]}, ": expected {.*TypeError"),
            ({**QA, "question": " \n"}, ": the question is '' and the context \"It rained"),
            ({**QA, "context": " "}, ": the question is 'Who came.' and the context ' '"),
            ({**QA, "answers": [{"text": "Bob", "start": 11}]}, ": the answer is 'Bob', .* 'Ann' .* 11"),
            ({**QA, "answers": [{"text": "", "start": 11}]}, ": the answer is '', .* 11"),
        ]),
        *(("srl", SRL, line, message) for line, message in [
            ("[]", ": expected {.*TypeError"),
            ({"tokens": ["a"]}, ": expected {.*KeyError: 'predicates'"),
            (predicate(args=[[0, 1]]), ": expected {.*TypeError"),
            (predicate(index=4), ": 'rain.01' is at token 4, .* 4 tokens"),
            (predicate(args=[[3, 5, "ARG1"]]), r": ARG1 of 'rain.01' is \[3, 5\), .* 4 tokens"),
            (predicate(args=[[1, 1, "ARG1"]]), r": ARG1 of 'rain.01' is \[1, 1\), .* 4 tokens"),
            (predicate(args=[[0, 2, "ARG1"], [1, 2, "ARG0"]]), r": ARG0 .* at \[1, 2\) overlaps another"),
        ]),
    ],
)  # fmt: skip
def test_bad_lines(tmp_path, task, good, line, message):
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2" + message):
        converted(task, tmp_path, good, line)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "task, kind",
    [("coref", "document"), ("nli", "pair"), ("qa", "question"), ("srl", "sentence")],
)
def test_empty_file(tmp_path, task, kind):
    with pytest.raises(ValueError, match=f"a.jsonl has no {kind}"):
        converted(task, tmp_path, "")


def test_error_is_one_message(tmp_path, monkeypatch):
    options = [str(tmp_path / "absent.jsonl"), str(tmp_path / "a.spacy")]
    monkeypatch.setattr(sys, "argv", ["convert", *options])
    with pytest.raises(SystemExit, match=r"absent\.jsonl"):
        run(tasks.srl.convert.convert, parser("about"), "{out}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "task, records, without, message",
    [
        ("coref", [COREF, BARE], None, "2 Docs, 9 tokens, 2 mentions in 1 clusters"),
        ("nli", [YES, NO], None, "2 Docs, 12 tokens, 2 labels"),
        (
            "qa", [QA, UNANSWERED], None,
            "1 Docs, 17 tokens, 0 answers extended to whole tokens; left out: 1 questions without an answer, 0 ",
        ),
        (
            "qa", [QA, UNANSWERED], QA,
            "0 Docs, 0 tokens, 0 answers extended to whole tokens; left out: 1 questions without an answer, 1 "
            "that are in the other file",
        ),
        ("srl", [SRL, SILENT], None, "1 Docs, 1 predicates, 2 arguments; 1 sentences without"),
    ],
)  # fmt: skip
def test_command_line(tmp_path, task, records, without, message):
    path = write(tmp_path / "a.jsonl", *records)
    command = [sys.executable, "-m", f"tasks.{task}.convert", str(path), str(tmp_path / "a.spacy")]
    if without:
        command += ["--without", str(write(tmp_path / "b.jsonl", without))]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert f"a.spacy: {message}" in done.stdout
