"""IOB2 text becomes Docs with the same words, entities and sentences, as by spaCy's own command."""

import subprocess
import sys

import pytest
import spacy
from spacy.cli.convert import convert as spacy_convert
from spacy.tokens import DocBin

from projects.compare import convert_ner
from projects.compare.convert_ner import convert

TEXT = (
    "Rose\tB-PERSON\nHale\tI-PERSON\nleft\tO\nBath\tB-PLACE\n.\tO\n{empty}\n"
    "Ann\tB-PERSON\nBob\tB-PERSON\n\n{empty}\n"
    "Nobody\tO\n"
)
SENTENCES = [
    (["Rose", "Hale", "left", "Bath", "."], [(0, 2, "PERSON"), (3, 4, "PLACE")]),
    (["Ann", "Bob"], [(0, 1, "PERSON"), (1, 2, "PERSON")]),
    (["Nobody"], []),
]


def read(path):
    docs = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    return [
        ([token.text for token in doc], [(ent.start, ent.end, ent.label_) for ent in doc.ents])
        for doc in docs
    ]


@pytest.mark.parametrize("empty", ["", "\t", " \t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_sentence_ends_at_a_line_without_a_word(tmp_path, empty, newline):
    """The released WNUT17 has a tab in such lines."""
    (tmp_path / "a.tsv").write_text(TEXT.format(empty=empty), encoding="utf-8", newline=newline)
    convert(tmp_path / "a.tsv", tmp_path / "new" / "a.spacy")
    assert read(tmp_path / "new" / "a.spacy") == SENTENCES


def test_spacy_converts_a_clean_file_alike(tmp_path):
    (tmp_path / "a.tsv").write_text(TEXT.format(empty=""), encoding="utf-8")
    spacy_convert(tmp_path / "a.tsv", tmp_path, file_type="spacy", converter="ner", n_sents=1)
    assert read(tmp_path / "a.spacy") == SENTENCES


def test_an_entity_may_begin_with_i(tmp_path):
    """As in WNUT17."""
    (tmp_path / "a.tsv").write_text("a\tI-X\nb\tI-X\nc\tI-Y\n", encoding="utf-8")
    convert(tmp_path / "a.tsv", tmp_path / "a.spacy")
    assert read(tmp_path / "a.spacy") == [(["a", "b", "c"], [(0, 2, "X"), (2, 3, "Y")])]


@pytest.mark.parametrize(
    "content",
    [
        b"a\tO\nb\n",
        b"a\tO\nBath\tPLACE\n",
        b"\n \n",
        "Orsay\tO\nf\xeat\xe9\tO\n".encode("latin-1"),
        "New\u00a0York\tB-LOC\nCity\tI-LOC\n".encode(),
        b"New NNP I-NP B-LOC\nBath B-LOC\n",
        "Bath\tB-LOC\n\nNew\u00a0York\tB-LOC\n".encode(),
    ],  # fmt: skip
)
def test_a_bad_file_is_named_and_nothing_written(tmp_path, content):
    (tmp_path / "bad.tsv").write_bytes(content)
    with pytest.raises(ValueError, match="bad.tsv"):
        convert(tmp_path / "bad.tsv", tmp_path / "out.spacy")
    assert not (tmp_path / "out.spacy").exists()


def test_the_program_prints_a_count_or_one_message(tmp_path):
    (tmp_path / "a.tsv").write_text(TEXT.format(empty=""), encoding="utf-8")
    command = [sys.executable, convert_ner.__file__]
    done = subprocess.run(
        [*command, tmp_path / "a.tsv", tmp_path / "a.spacy"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().endswith("a.spacy: 3 sentences")
    done = subprocess.run(
        [*command, tmp_path / "missing.tsv", "out.spacy"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "missing.tsv" in done.stderr and "Traceback" not in done.stderr
