"""Labelled texts become Docs with the same text and all labels, and bad lines are named."""

import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from projects.compare import convert_textcat
from projects.compare.convert_textcat import convert

TEXT = (
    '{"text": "It \'s fine .", "label": "good"}\n'
    "\n"
    '{"label": "bad", "text": "Don\'t!", "fine": "bad:imperative"}\r\n'
    '{"text": "Fêté .", "label": "good"}\n'
)


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


def test_texts_and_labels(jsonl, tmp_path):
    out = tmp_path / "new" / "a.spacy"
    assert convert(jsonl, out) == (3, 9, 2)
    docs = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [(doc.text, [token.text for token in doc], doc.cats) for doc in docs] == [
        ("It 's fine .", ["It", "'s", "fine", "."], {"good": 1.0, "bad": 0.0}),
        ("Don't!", ["Do", "n't", "!"], {"good": 0.0, "bad": 1.0}),
        ("Fêté .", ["Fêté", "."], {"good": 1.0, "bad": 0.0}),
    ]


def test_language(jsonl, tmp_path):
    convert(jsonl, tmp_path / "a.spacy", lang="xx")
    docs = list(DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("xx").vocab))
    assert [token.text for token in docs[1]] == ["Don't", "!"]


GOOD = '{"text": "a", "label": "b"}\n'


@pytest.mark.parametrize(
    "text, message",
    [
        (f"{GOOD}\n" + "{'text': 'a'}\n", ":3: \"{'text': 'a'}\" is not JSON"),
        (f'{GOOD}{{"text": "a"}}\n', ":2: label is None"),
        ('{"text": "a", "label": 3}\n', ":1: label is 3"),
        ('{"text": " ", "label": "b"}\n', ":1: text is ' '"),
        ('["a", "b"]\n', ":1: text is None"),
        ("\n \n", " has no text"),
    ],
)
def test_bad_line_is_named_and_nothing_written(tmp_path, text, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"bad.jsonl{message}"):
        convert(path, tmp_path / "out.spacy")
    assert not (tmp_path / "out.spacy").exists()


def test_other_encoding_names_the_file(tmp_path):
    path = tmp_path / "latin.jsonl"
    path.write_bytes('{"text": "fêté", "label": "b"}'.encode("latin-1"))
    with pytest.raises(ValueError, match="latin.jsonl is not UTF-8"):
        convert(path, tmp_path / "out.spacy")


def test_command_says_what_it_did_or_what_is_wrong(jsonl, tmp_path):
    command = [sys.executable, convert_textcat.__file__]
    done = subprocess.run([*command, jsonl, tmp_path / "a.spacy"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().endswith("a.spacy: 3 Docs, 9 tokens, 2 labels")

    done = subprocess.run(
        [*command, tmp_path / "missing.jsonl", "out.spacy"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "missing.jsonl" in done.stderr and "Traceback" not in done.stderr
