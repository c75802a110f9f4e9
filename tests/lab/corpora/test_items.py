"""The items of files are divided into shards."""

import gzip
import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.lab.corpora import items as corpus
from spacy_elmo.lab.corpora.items import corpus_files, read_shards

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


def items(*files, **options):
    return [item for shard in read_shards(files, **options) for item in shard.items]


def write(path, content):
    path.write_bytes(content.encode("utf8", "surrogatepass"))
    return path


def test_a_line_is_an_item_and_blank_ones_count(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeffone two\r\n\n  three \t\n \nfour")
    assert items(path) == ["one two", "", "three", "", "four"]
    assert items(path, tokenized=True) == [["one", "two"], [], ["three"], [], ["four"]]


def test_records_are_texts_or_words(tmp_path):
    records = [{"text": "a b\nc", "id": 1}, {"tokens": ["a", "b c", " "], "text": "x"}]
    records += [{"text": ""}, {"tokens": []}]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records)) + "\n\n")
    assert items(path) == ["a b\nc", ["a", "b c", " "], "", []]
    assert items(path, tokenized=True) == [["a", "b", "c"], ["a", "b c", " "], [], []]


def test_docs_are_words(tmp_path):
    vocab = spacy.blank("en").vocab
    words = [["Hi", "there", " ", "\n", "."], [], ["naïve"]]
    DocBin(docs=[Doc(vocab, words=w) for w in words]).to_disk(tmp_path / "a.spacy")
    assert items(tmp_path / "a.spacy") == words


def test_conllu_sentences_are_their_syntactic_words(tmp_path):
    expected = [["zu", "dem", "Haus", "."], ["Ja"]]
    assert items(write(tmp_path / "a.conllu", CONLLU)) == expected
    assert items(write(tmp_path / "b.conllu", CONLLU.replace("\n", "\r\n"))) == expected


def test_packed(tmp_path):
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(CONLLU.encode()))
    assert corpus_files(str(tmp_path)) == [path]
    assert items(path)[1] == ["Ja"]


def test_the_files_of_a_folder(tmp_path):
    for name in ("b.txt", "a.conllu", "c.jsonl", "d.md", "e.spacy"):
        (tmp_path / name).touch()
    names = ["a.conllu", "b.txt", "c.jsonl", "e.spacy"]
    assert [file.name for file in corpus_files(str(tmp_path))] == names
    (tmp_path / "f.parquet").touch()
    with pytest.raises(ValueError, match=r"f\.parquet: the format \.parquet is not supported"):
        corpus_files(str(tmp_path / "f.parquet"))


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
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, problem):
    with pytest.raises(ValueError, match=rf"{name}.*{problem}"):
        items(write(tmp_path / name, content))


@given(
    files=st.lists(st.lists(st.text("ab ", max_size=9), min_size=1), min_size=1, max_size=4),
    size=st.integers(1, 40),
)
def test_shards_are_the_items_in_order(tmp_path_factory, files, size):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{number}.txt" for number in range(len(files))]
    for path, lines in zip(paths, files, strict=True):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CHARACTERS_PER_SHARD", size)
        actual = list(read_shards(paths))
    assert [item for s in actual for item in s.items] == [x.strip() for xs in files for x in xs]
    assert [s.number for s in actual] == list(range(len(actual)))
    starts = [sum(len(s.items) for s in actual[:n]) for n in range(len(actual))]
    assert [s.first for s in actual] == starts
    for shard in actual:
        # A shard ends with the item that fills it.
        sizes = [len(item) + 1 for item in shard.items]
        assert sum(sizes[:-1]) < size
    for path, lines in zip(paths, files, strict=True):
        assert sum(len(s.items) for s in actual if s.source == str(path)) == len(lines)


def test_digest_tells_items_apart():
    lists = [["a b"], [["a", "b"]], [["a b"]], ["a", "b"], ["ab"], ["a b", ""], []]
    digests = {corpus.Shard(0, "a", 0, items).digest for items in lists}
    assert len(digests) == len(lists)
    assert corpus.Shard(7, "b", 9, ["a b"]).digest == corpus.Shard(0, "a", 0, ["a b"]).digest
