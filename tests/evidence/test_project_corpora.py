"""Labelled files become `.spacy` files, which may be cut."""

import dataclasses
import json
import unicodedata

import pytest
import spacy
from experiments.corpora import cut, make
from experiments.plan import Corpus, Cut, Data, Plan
from experiments.raw_text import write
from experiments.spelling import respell, spelled, spelling_of
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.bilm.words.spelling import Spelling
from tests import tiny
from tests.evidence.folders import EVIDENCE

ANN = Data("ner", "ann")


@pytest.fixture
def plan():
    converter = [str(EVIDENCE.parent / "projects/compare/convert_ner.py"), "{source}", "{out}"]
    content = {"converters": {"ner": converter}, "sources": {"ner/ann": "ner/ann-{part}.tsv"}}
    return Plan(EVIDENCE / "plan.yml", content)


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    (folder / "ner").mkdir(parents=True)
    lines = [f"Ann{i}\tB-PERSON\nleft\tO\n" for i in range(20)]
    (folder / "ner" / "ann-train.tsv").write_text("\n".join(lines))
    (folder / "ner" / "ann-dev.tsv").write_text("Ann\n")
    monkeypatch.chdir(tmp_path)
    return folder


def texts(corpus):
    vocab = spacy.blank("en").vocab
    return [doc.text for doc in DocBin().from_disk(corpus.path).get_docs(vocab)]


def test_converted_once_and_cut(plan, data):
    part, entire = Corpus(ANN, "train", Cut(limit=10, share=20)), Corpus(ANN, "train")
    make(plan, [part], data, 1)
    assert len(texts(entire)) == 20 and len(texts(part)) == 2
    assert set(texts(part)) < set(texts(entire))
    # What is there is left alone, whatever became of its source.
    (data / "ner" / "ann-train.tsv").unlink()
    make(plan, [entire, part, Corpus(ANN, "train", Cut(limit=3))], data, 1)
    assert len(texts(Corpus(ANN, "train", Cut(limit=3)))) == 3
    assert sorted(path.name for path in entire.path.parent.iterdir()) == [
        "ann-train-limit10-share20.spacy", "ann-train-limit3.spacy", "ann-train.spacy",
    ]  # fmt: skip


def test_only_the_training_part_has_its_further_arguments(data, tmp_path):
    script = "import sys; open(sys.argv[1], 'w').write('|'.join(sys.argv[2:]))"
    content = {
        "converters": {"ner": ["-c", script, "{out}"]},
        "sources": {"ner/ann": "ner/ann-{part}.tsv", "ner/bo": "ner/ann-{part}.tsv"},
        "train_arguments": {"ner/ann": ["--without", "{dev}"]},
    }
    corpora = [Corpus(ANN, "train"), Corpus(ANN, "dev"), Corpus(Data("ner", "bo"), "train")]
    make(Plan(tmp_path / "plan.yml", content), corpora, data, 1)
    assert [corpus.path.read_text() for corpus in corpora] == [
        f"--without|{data / 'ner' / 'ann-dev.tsv'}", "", "",
    ]  # fmt: skip


def test_errors_come_before_the_spelling(plan, data):
    rule = Spelling("NFD", (("v", "u"), ("\u0301", "")))
    lines = "\n".join("víves\tB-PERSON\nvia\tO\n" for _ in range(50))
    (data / "ner" / "ann-test.tsv").write_text(lines, "utf8")
    clean, noisy = Corpus(ANN, "test"), Corpus(ANN, "test", noise=20)
    make(plan, [clean, noisy], data, 1, rule)
    before, after = (
        list(DocBin().from_disk(corpus.path).get_docs(spacy.blank("la").vocab))
        for corpus in (clean, noisy)
    )
    assert {doc.text for doc in before} == {"uiues uia "}
    changed = sum(a.text != b.text for a, b in zip(before, after, strict=True))
    assert 5 < changed < 40
    # None of the errors that look like v is left for one variant alone to undo; one word is one token, as before.
    assert not any("v" in doc.text for doc in after)
    assert all(len(doc) == 2 and doc.has_unknown_spaces and doc.ents for doc in after)


def test_a_converter_may_name_its_output(data, tmp_path):
    script = "import sys, pathlib; pathlib.Path(sys.argv[1], 'own-name.spacy').touch()"
    content = {
        "converters": {"ner": ["-c", script, "{folder}"]},
        "sources": {"ner/ann": "ner/ann-{part}.tsv"},
    }
    make(Plan(tmp_path / "plan.yml", content), [Corpus(ANN, "dev")], data, 1)
    assert [path.name for path in Corpus(ANN, "dev").path.parent.iterdir()] == ["ann-dev.spacy"]


def test_letters_are_whole_for_who_counts_them():
    rule = Spelling("NFD", (("\u0300", "\u0301"),))
    words = spelled(["\u1f70", "a\u0300", "b"], rule)  # Greek and Latin, with a grave accent
    assert words == [
        unicodedata.normalize("NFC", word) for word in ("\u03b1\u0301", "a\u0301", "b")
    ]
    # What the biLM makes of them is what it makes of the text.
    assert rule(words) == rule(["\u1f70", "a\u0300", "b"])
    assert spelled(["a\u0300"], Spelling()) == ["a\u0300"]


def test_respelled_docs_keep_their_annotation(docs):
    read = DocBin(store_user_data=True).from_bytes(cut(docs, Cut()).to_bytes())
    written = respell(read, Spelling("", (("A", "O"),))).to_bytes()
    found = list(DocBin().from_bytes(written).get_docs(spacy.blank("en").vocab))
    assert {doc[0].text for doc in found} == {"Onn"} and len(found) == 30
    for doc in found:
        number = int(doc[1].text)
        assert doc._.remark == number and doc.spans["sc"][0].label_ == f"L{number}"
        assert (doc.ents[0].label_, doc[0].tag_, doc.cats) == ("PERSON", "NNP", {"NUMBER": number})


def test_the_rule_is_that_of_the_weights(tmp_path):
    config = dataclasses.replace(tiny.config(), unicode_form="NFC", replace={"v": "u"})
    Weights.from_bilm(tiny.bilm(config)).save(tmp_path / "la.safetensors")
    assert spelling_of(str(tmp_path / "la.safetensors")) == Spelling("NFC", (("v", "u"),))
    assert spelling_of(None) == Spelling()


def test_what_cannot_be_read_leaves_no_file(plan, data):
    with pytest.raises(FileNotFoundError, match="no file .*ann-test.tsv; README.md"):
        make(plan, [Corpus(ANN, "test")], data, 1)
    with pytest.raises(ValueError, match="ann-dev.tsv"):
        make(plan, [Corpus(ANN, "dev")], data, 1)
    assert list((data.parent / "corpus" / "ner").iterdir()) == []


@pytest.fixture(scope="module")
def docs():
    """Return thirty Docs with all annotation that the tasks of the project need."""
    Doc.set_extension("remark", default=None, force=True)
    vocab = spacy.blank("en").vocab
    made = DocBin(store_user_data=True)
    for number in range(30):
        doc = Doc(vocab, words=["Ann", str(number)], ents=["B-PERSON", "O"], tags=["NNP", "CD"])
        doc.cats = {"NUMBER": float(number)}
        doc.spans["sc"] = [Span(doc, 0, 1, label=f"L{number}")]
        doc._.remark = number
        made.add(doc)
    # As it is when read from disk.
    yield DocBin().from_bytes(made.to_bytes())
    Doc.remove_extension("remark")


def numbers(part):
    return [cats["NUMBER"] for cats in part.cats]


def test_a_part_keeps_all_that_a_doc_carries(docs):
    part = DocBin().from_bytes(cut(docs, Cut(share=50)).to_bytes())
    actual = list(part.get_docs(spacy.blank("en").vocab))
    assert len(actual) == 15
    for doc in actual:
        number = int(doc[1].text)
        assert doc._.remark == number and doc.cats == {"NUMBER": number}
        assert doc.spans["sc"][0].label_ == f"L{number}"
        assert (doc.ents[0].label_, doc[0].tag_) == ("PERSON", "NNP")


@given(
    limits=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    shares=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_a_smaller_part_is_contained_in_a_larger(docs, limits, shares):
    small, large = (numbers(cut(docs, Cut(of(limits), of(shares)))) for of in (min, max))
    assert set(small) <= set(large) and len(set(large)) == len(large)
    # Never nothing, and not in the order of the file.
    assert len(small) == -(-min(30, min(limits)) * min(shares) // 100)
    assert numbers(cut(docs, Cut())) != sorted(numbers(cut(docs, Cut())))


def test_raw_text(tmp_path):
    (tmp_path / "a.txt").write_text("Ann left.\n\nIt was late.\nShe came.\n")
    out = tmp_path / "rivals"
    assert write(str(tmp_path / "a.txt"), out) == 10
    assert (out / "raw.txt").read_text() == "Ann left .\nIt was late .\nShe came .\n"
    # A line that begins before the limit is kept whole.
    assert write(str(tmp_path / "a.txt"), out, words=4, jsonl_words=2) == 7
    assert (out / "raw.txt").read_text() == "Ann left .\nIt was late .\n"
    assert json.loads((out / "raw.jsonl").read_text()) == {"text": "Ann left ."}
    rule = Spelling("", (("A", "O"),))
    assert write(str(tmp_path / "a.txt"), out, words=1, lang="la", spelling=rule) == 3
    assert (out / "raw.txt").read_text() == "Onn left .\n"


def test_no_raw_text(tmp_path):
    (tmp_path / "a.txt").write_text("\n")
    with pytest.raises(ValueError, match="a.txt has no text"):
        write(str(tmp_path / "a.txt"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
