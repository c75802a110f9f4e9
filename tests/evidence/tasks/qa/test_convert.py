"""Questions on contexts become Docs, and bad lines are named."""

import json
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from tasks.pairs import line_break
from tasks.qa.annotation import answer
from tasks.qa.convert import convert

from tests.evidence.folders import EVIDENCE

GOOD = {
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
SILENT = {**GOOD, "answers": []}


def write(path, *records):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_questions_with_answers(tmp_path):
    out = tmp_path / "new" / "a.spacy"
    # can' is not what the tokenizer makes of it: ca, n't.
    assert convert(write(tmp_path / "a.jsonl", GOOD, "", SILENT, WITHIN), out) == (2, 26, 1, 1, 0)
    first, second = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert first.text == "Who came?\nIt rained.\nAnna can't sing, so Anna came."
    assert line_break(first) == 3 and line_break(second) == 3
    assert (answer(first).text, answer(first).start_char) == ("Anna", 41)
    assert answer(second).text == "can't"


def test_what_another_file_asks_is_left_out(tmp_path):
    out = tmp_path / "a.spacy"
    # As the Docs have it: whitespace in the question says nothing, every letter of the context counts.
    same = {**GOOD, "question": "Who came?", "answers": []}
    elsewhere = {**GOOD, "context": GOOD["context"] + " "}
    other_question = {**GOOD, "question": "Who sang?"}
    path = write(tmp_path / "a.jsonl", GOOD, elsewhere, SILENT, other_question, GOOD)
    counts = convert(path, out, other=write(tmp_path / "b.jsonl", same, WITHIN))
    assert (counts.docs, counts.without, counts.elsewhere) == (2, 1, 2)
    docs = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [doc.text for doc in docs] == [
        "Who came?\n" + elsewhere["context"], "Who sang?\n" + GOOD["context"],
    ]  # fmt: skip


def changed(**fields):
    return {**GOOD, **fields}


@pytest.mark.parametrize(
    "line, message",
    [
        ("{'question'", " is not valid JSON"),
        ("[]", ": expected {.*TypeError"),
        ({"question": "Who?", "context": "Anna."}, ": expected {.*KeyError: 'answers'"),
        (changed(question=None), ": expected {.*AttributeError"),
        (changed(answers=["Anna"]), ": expected {.*TypeError"),
        (changed(question=" \n"), ": the question is '' and the context \"It rained"),
        (changed(context=" "), ": the question is 'Who came.' and the context ' '"),
        (
            changed(answers=[{"text": "Bob", "start": 11}]),
            ": the answer is 'Bob', .* 'Ann' .* 11",
        ),
        (changed(answers=[{"text": "", "start": 11}]), ": the answer is '', .* 11"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    out = tmp_path / "a.spacy"
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2" + message):
        convert(write(tmp_path / "a.jsonl", GOOD, line), out)
    assert not out.exists()


def test_empty_file(tmp_path):
    with pytest.raises(ValueError, match="a.jsonl has no question"):
        convert(write(tmp_path / "a.jsonl", ""), tmp_path / "a.spacy")


@pytest.mark.slow
def test_command_line(tmp_path):
    command = [
        sys.executable,
        "-m",
        "tasks.qa.convert",
        str(tmp_path / "a.jsonl"),
        str(tmp_path / "a.spacy"),
    ]
    failed = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "a.jsonl" in failed.stderr and "Traceback" not in failed.stderr
    write(tmp_path / "a.jsonl", GOOD, SILENT)
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True)
    assert "1 Docs, 17 tokens, 0 answers" in done.stdout
    assert "left out: 1 questions without an answer, 0 " in done.stdout
    write(tmp_path / "b.jsonl", GOOD)
    done = subprocess.run(
        [*command, "--without", str(tmp_path / "b.jsonl")],
        cwd=EVIDENCE, capture_output=True, text=True,
    )  # fmt: skip
    assert "0 Docs, 0 tokens" in done.stdout and ", 1 that are in the other file" in done.stdout
