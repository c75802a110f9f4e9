"""Documents from text files of all kinds, and their possible defects."""

import gzip
import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.text.passages import Passage, passages
from spacy_elmo.text.reading import text_files


def lines(*found: str) -> Passage:
    return Passage([*found], is_tokenized=False)


def words(*found: str) -> Passage:
    return Passage([*found], is_tokenized=True)


def read(path) -> list[Passage]:
    return list(passages(text_files(str(path))))


def test_a_blank_line_ends_a_passage(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n one \r\ntwo\n\n  \nthree\n")
    assert read(path) == [lines("one", "two"), lines("three")]


def test_a_file_ends_a_passage(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"line {name}", encoding="utf8")
    assert read(tmp_path) == [lines("line a"), lines("line b")]


def test_a_hundred_lines_end_a_passage(tmp_path):
    """A text with one sentence per line and no blank lines is not a single passage."""
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(map(str, range(250))), encoding="utf8")
    found = read(path)
    assert [len(passage.parts) for passage in found] == [100, 100, 50]
    assert [line for passage in found for line in passage.parts] == [*map(str, range(250))]
    path.write_text("line\n" * 100 + "\n\nline\n", encoding="utf8")
    assert [len(passage.parts) for passage in read(path)] == [100, 1]


@pytest.mark.parametrize(
    "text", ["word " * 50_000 + "end", "字" * 250_000, "a  b " * 30_000 + "c" * 99_999]
)
def test_a_long_line_is_cut(tmp_path, text):
    """A text on one line is many passages, because some are held out, and one would not fit into memory."""
    (tmp_path / "a.txt").write_text(f"first\n{text}\nlast\n", encoding="utf8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": f"first\n{text}"}), encoding="utf8")
    *found, record = read(tmp_path)
    pieces = [piece for passage in found for piece in passage.parts]
    assert len(found) >= 3 and found[0].parts[0] == "first" and found[-1].parts == ["last"]
    assert max(map(len, pieces)) <= 100_000
    assert " ".join(pieces[1:-1]).split() == text.split() or "".join(pieces[1:-1]) == text
    assert record.parts == pieces[:-1]


@pytest.mark.parametrize("name, pack", [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)])
def test_a_record_is_a_passage(tmp_path, name, pack):
    records = [
        {"text": "One line.\n\n Another,  é.\r\n", "meta": {"text": 1}},
        {"tokens": ["New", "York", "\n", "a\nb", "."], "text": None},
        {"text": " \n "},
        {"tokens": []},
        {"text": "ignored", "tokens": ["words", "of", "your", "own"]},
    ]
    raw = b"\xef\xbb\xbf" + "\n\n".join(map(json.dumps, records)).encode()
    (tmp_path / name).write_bytes(pack(raw))
    assert read(tmp_path / name) == [
        lines("One line.", "Another,  é."),
        # A word cannot hold a line's end; whitespace can.
        words("New", "York", "\n", "a b", "."),
        words("words", "of", "your", "own"),
    ]


@pytest.mark.parametrize(
    "line, message",
    [
        ("plain text", r"is not valid JSON \(Expecting value at column 1\)"),
        ('{"text": "open', r"is not valid JSON \(Invalid control character at at column 15"),
        ('"text"', 'expected {"text": a string} .* but got "text"'),
        ('{"body": "x"}', 'expected {"text": a string} .* but got {"body": "x"}'),
        ('{"text": 5}', 'but got {"text": 5}'),
        ('{"tokens": "a b"}', 'but got {"tokens": "a b"}'),
        ('{"tokens": ["a", 1], "text": "a 1"}', "but got"),
        ("[" * 100_000, "recursion"),
        (r'{"text": "half \ud83d"}', "surrogates not allowed"),
        (r'{"tokens": ["\udc00"]}', "surrogates not allowed"),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n\n' + line + "\n", encoding="utf8")
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3.*{message}"):
        read(path)


def test_a_docbin_gives_its_words(tmp_path):
    """It may be of any language, with annotations, and with extensions that are not registered here."""
    nlp = spacy.blank("de")
    texts = [["Ein", "Haus", "\n\n", "Zwei", "Häuser", "."], [], ["naïve", " ", "犬"]]
    docs = [Doc(nlp.vocab, words=text) for text in texts]
    docs[0].ents = [Span(docs[0], 0, 2, label="HOUSE")]
    docs[0].user_data["._.", "gone", None, None] = 1
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    assert read(tmp_path / "a.spacy") == [words(*texts[0]), words(*texts[2])]


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-20], lambda raw: raw[:1], lambda raw: b"text"]
)
def test_a_damaged_docbin_is_named(tmp_path, damage):
    doc = Doc(spacy.blank("en").vocab, words=["a", "b"])
    raw = DocBin(docs=[doc]).to_bytes()
    (tmp_path / "a.spacy").write_bytes(damage(raw))
    with pytest.raises(ValueError, match=r"a\.spacy is not a DocBin, or is damaged"):
        read(tmp_path / "a.spacy")
