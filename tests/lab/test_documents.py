"""The documents in files of every kind, batches of documents, and word senses."""

import gzip
import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.lab.documents import Document, corpus_files, read_documents
from spacy_elmo.lab.senses import entry_of, read_first_senses, read_senses
from spacy_elmo.text.passages import batches

BANK, BANK_2, TOOK = "bank%1:17:01::", "bank%1:14:00::", "take_place%2:30:00::"

CONLLU = """\
# sent_id = 1
# text = Zum Haus.
1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\tzu\tADP\t_\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t_\t_
3.1\tgehen\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

1\tJa\tja\tINTJ\t_\t_\t0\troot\t_\t_
"""


def texts(path, **options):
    return [document.text for document in read_documents(str(path), **options)]


def write(path, content):
    path.write_bytes(content.encode("utf8", "surrogatepass"))
    return path


def test_each_line_is_a_document_also_if_blank(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeffone two\r\n\n  three \t\n \nfour")
    assert texts(path) == ["one two", "", "three", "", "four"]
    assert texts(path, tokenized=True) == [["one", "two"], [], ["three"], [], ["four"]]


def test_records_are_texts_or_words(tmp_path):
    records = [{"text": "a b\nc", "id": 1}, {"tokens": ["a", "b c", " "], "text": "x"}]
    records += [{"text": ""}, {"tokens": []}]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records)) + "\n\n")
    assert texts(path) == ["a b\nc", ["a", "b c", " "], "", []]
    assert texts(path, tokenized=True) == [["a", "b", "c"], ["a", "b c", " "], [], []]


def test_docs_are_words(tmp_path):
    vocab = spacy.blank("en").vocab
    words = [["Hi", "there", " ", "\n", "."], [], ["naïve"]]
    DocBin(docs=[Doc(vocab, words=w) for w in words]).to_disk(tmp_path / "a.spacy")
    assert texts(tmp_path / "a.spacy") == words


def test_conllu_sentences_are_their_syntactic_words(tmp_path):
    expected = [["zu", "dem", "Haus", "."], ["Ja"]]
    assert texts(write(tmp_path / "a.conllu", CONLLU)) == expected
    assert texts(write(tmp_path / "b.conllu", CONLLU.replace("\n", "\r\n"))) == expected
    (tmp_path / "c.conllu.gz").write_bytes(gzip.compress(CONLLU.encode()))
    assert texts(tmp_path / "c.conllu.gz") == expected


def test_the_files_of_a_folder(tmp_path):
    for name in ("b.txt", "a.conllu", "c.jsonl", "d.md", "e.spacy"):
        (tmp_path / name).write_text("a")
    names = ["a.conllu", "b.txt", "c.jsonl", "e.spacy"]
    assert [file.name for file in corpus_files(str(tmp_path))] == names
    (tmp_path / "f.parquet").write_text("a")
    with pytest.raises(ValueError, match=r"f\.parquet: the format \.parquet is not supported"):
        corpus_files(str(tmp_path / "f.parquet"))


def annotated(**fields):
    return json.dumps({"tokens": ["bank"], "sense": [BANK]} | fields)


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("a.txt", "fine\n\udc80", "line 2 is not UTF-8"),
        ("a.jsonl", '{"text": "a"}\n{"text"}', "line 2 is not valid JSON .* at column 8"),
        ("a.jsonl", '{"tokens": ["a", ""]}', 'line 1: expected .*none empty.*"a", ""'),
        ("a.jsonl", '{"tokens": "a"}', "line 1: expected"),
        ("a.jsonl", "[]", "line 1: expected"),
        ("a.jsonl", r'{"text": "\ud800"}', "line 1: .*surrogates"),
        ("a.jsonl", r'{"tokens": ["\ud800"]}', "line 1: .*surrogates"),
        ("a.conllu", "# text\nHello there\n", "line 2 is not CoNLL-U.*Hello there"),
        ("a.conllu", "1\t" + "\t_" * 8, "line 1 is not CoNLL-U"),
        ("a.conllu", "1\tHello\n", "line 1 is not CoNLL-U"),
        ("a.spacy", "nothing", "not a DocBin"),
        ("a.txt.gz", "nothing", "is damaged"),
        # Annotated with senses.
        ("a.jsonl", '{"sense": []}', "line 1: expected"),
        ("a.jsonl", annotated(sense=[]), "line 1: expected"),
        ("a.jsonl", annotated(tokens=[" "]), "line 1: expected"),
        ("a.jsonl", annotated(gold_all=[]), "line 1: expected"),
        ("a.jsonl", annotated() + "\n[1", "line 2 is not valid JSON"),
        ("a.jsonl", annotated() + "\n[]", "line 2: expected"),
        ("a.jsonl", annotated(gold_all={"0": []}), r"gold_all of token 0 .* \[\]"),
        ("a.jsonl", annotated(gold_all={"0": 5}), "gold_all of token 0 .* 5"),
        ("a.jsonl", annotated(sense=["bank.n.01"]), "'bank.n.01' is not a WordNet sense key"),
        ("a.jsonl", annotated(sense=[3]), "3 is not a WordNet sense key"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, problem):
    with pytest.raises(ValueError, match=rf"{name}.*{problem}"):
        texts(write(tmp_path / name, content), senses=True)


def test_senses_are_read_on_request(tmp_path):
    record = {"tokens": ["a", "river bank"], "sense": [None, "bank%1:17:01::"]}
    path = write(tmp_path / "a.jsonl", json.dumps(record))
    (document,) = read_documents(str(path), senses=True)
    assert document.text == ["a", "river", "bank"] and document.name == f"{path}:1"
    assert document.senses == [(1, 3, ("bank%1:17:01::",))]
    (document,) = read_documents(str(path))
    assert document == Document(record["tokens"], f"{path}:1")
    write(path, '{"text": "plain"}\n{"text": "a", "sense": 1}')
    assert [d.senses for d in read_documents(str(path), senses=True)] == [None, None]


@given(texts=st.lists(st.text("ab ", max_size=9)), size=st.integers(1, 40))
def test_batches_are_the_documents_in_order(texts, size):
    documents = [Document(text, "") for text in texts]
    found = list(batches(documents, size, len))
    assert [document for batch in found for document in batch] == documents
    for number, batch in enumerate(found):
        # A batch ends with the document that fills it. A blank line has a size, too.
        sizes = [len(document.text) + 1 for document in batch]
        assert sum(sizes[:-1]) < size
        assert sum(sizes) >= size or number == len(found) - 1


def test_annotated_words(tmp_path):
    """A token of several words is split, and several senses can be right."""
    records = [
        {"tokens": ["The", "bank", "took place", "."], "sense": [None, BANK, TOOK, None]},
        {"tokens": ["No", "sense"], "sense": [None, None], "lemma": ["no", "sense"]},
        {"tokens": ["to", "bank"], "sense": [None, BANK], "gold_all": {"1": [BANK, BANK_2]}},
        {"tokens": ["bank"], "sense": [BANK], "gold_all": {}},
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records)))
    assert list(read_senses([path])) == [
        (["The", "bank", "took", "place", "."], [(1, 2, (BANK,)), (2, 4, (TOOK,))]),
        (["No", "sense"], []),
        (["to", "bank"], [(1, 2, (BANK, BANK_2))]),
        (["bank"], [(0, 1, (BANK,))]),
    ]


@pytest.mark.parametrize(
    "key, entry",
    [
        (BANK, "bank%1"),
        (TOOK, "take_place%2"),
        ("recent%5:00:00:past:00", "recent%3"),
        ("recent%3:00:00::", "recent%3"),
        ("recently%4:02:00::", "recently%4"),
    ],
)
def test_entry(key, entry):
    assert entry_of(key) == entry


def test_first_senses(tmp_path):
    file = tmp_path / "index.sense"
    file.write_text(
        "bank%1:14:00:: 08420278 2 20\n"
        "bank%1:17:01:: 09213565 1 25\n"
        "bank%2:40:00:: 02310855 1 2\n"
        "recent%3:00:00:: 01730444 2 3\n"
        "recent%5:00:00:past:00 01642484 1 10\n"
    )
    assert read_first_senses(file) == {
        "bank%1": BANK,
        "bank%2": "bank%2:40:00::",
        "recent%3": "recent%5:00:00:past:00",
    }
    file.write_text("bank n 10 7 @ ~ #p\n")
    with pytest.raises(ValueError, match="index.sense, line 1: .*WordNet's index.sense"):
        read_first_senses(file)
