"""IOB2 text becomes Docs with the same words, entities and sentences, and bad lines are named."""

import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from scripts import convert_ner
from scripts.convert_ner import convert

TEXT = (
    "Rose\tB-PERSON\nHale\tI-PERSON\nleft\tO\nBath\tB-PLACE\n.\tO\n\n"
    "Ann\tB-PERSON\nBob\tB-PERSON\n\n\n"
    "Nobody\tO\n"
)


@pytest.fixture
def tsv(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return path


def read(path):
    docs = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    return [
        (
            [token.text for token in doc],
            [(ent.start, ent.end, ent.label_) for ent in doc.ents],
            [sent.start for sent in doc.sents],
        )
        for doc in docs
    ]


def test_sentence_per_doc(tsv, tmp_path):
    out = tmp_path / "new" / "a.spacy"
    assert convert(tsv, out) == (3, 3, 4, 0)
    assert read(out) == [
        (["Rose", "Hale", "left", "Bath", "."], [(0, 2, "PERSON"), (3, 4, "PLACE")], [0]),
        (["Ann", "Bob"], [(0, 1, "PERSON"), (1, 2, "PERSON")], [0]),
        (["Nobody"], [], [0]),
    ]


def test_two_sentences_per_doc(tsv, tmp_path):
    assert convert(tsv, tmp_path / "a.spacy", n_sents=2) == (3, 2, 4, 0)
    first, second = read(tmp_path / "a.spacy")
    assert first == (
        ["Rose", "Hale", "left", "Bath", ".", "Ann", "Bob"],
        [(0, 2, "PERSON"), (3, 4, "PLACE"), (5, 6, "PERSON"), (6, 7, "PERSON")],
        [0, 5],
    )
    assert second == (["Nobody"], [], [0])


def test_no_sentence_per_doc_is_an_error(tsv, tmp_path):
    with pytest.raises(ValueError, match="--n-sents 0"):
        convert(tsv, tmp_path / "a.spacy", n_sents=0)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a\tO\n\nb\tI-X\n", ":3: I-X at 'b' continues no X .*the sentence begins"),
        ("a\tB-X\nb\tI-Y\n", ":2: I-Y at 'b' continues no Y .the tag before is B-X"),
        ("a\tO\nb\n", ":2: expected token, tab, tag; found 'b'"),
        ("a\tO\textra\n", ":1: expected token, tab, tag"),
        ("\tO\n", ":1: expected token, tab, tag"),
        ("a\tX-Y\n", ":1: the tag 'X-Y' of 'a'"),
        ("a\tB-\n", ":1: the tag 'B-' of 'a'"),
        ("\n \n", ": no sentence in it"),
    ],
)
def test_bad_line_is_named_and_nothing_written(tmp_path, text, message):
    path = tmp_path / "bad.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"bad.tsv{message}"):
        convert(path, tmp_path / "out.spacy")
    assert not (tmp_path / "out.spacy").exists()


def test_other_encoding_names_the_file(tmp_path):
    path = tmp_path / "latin.tsv"
    path.write_bytes("Orsay\tO\nfêté\tO\n".encode("latin-1"))
    with pytest.raises(ValueError, match="latin.tsv: not UTF-8"):
        convert(path, tmp_path / "out.spacy")


def test_repair_begins_an_entity(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tI-X\nb\tI-X\nc\tI-Y\n", encoding="utf-8")
    assert convert(path, tmp_path / "a.spacy", repair=True) == (1, 1, 2, 2)
    assert read(tmp_path / "a.spacy") == [(["a", "b", "c"], [(0, 2, "X"), (2, 3, "Y")], [0])]


def test_command_says_what_it_did_or_what_is_wrong(tsv, tmp_path):
    command = [sys.executable, convert_ner.__file__]
    done = subprocess.run(
        [*command, tsv, tmp_path / "a.spacy", "--n-sents", "10"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().endswith("a.spacy: 3 sentences in 1 Docs, 4 entities")

    done = subprocess.run(
        [*command, tmp_path / "missing.tsv", "out.spacy"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "missing.tsv" in done.stderr and "Traceback" not in done.stderr
