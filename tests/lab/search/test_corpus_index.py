"""A corpus in an index, and the queries for it."""

import pytest
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.search.corpus_index import add_corpus, corpus_source, query_pipeline
from spacy_elmo.lab.search.index import SearchIndex
from tests import pipelines, tiny


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "en"})


@pytest.fixture
def nlp(weights):
    return pipelines.blank(weights)


def indexed(nlp, text, **options):
    index = SearchIndex()
    counts = list(add_corpus(index, nlp, str(text), **options))
    return index, counts


def actual(index):
    return [(e.doc_id.rsplit("/")[-1], e.text) for e in index._entries]


def test_sentences_of_files(nlp, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("A cat sat. It slept!\n\nThe bank isn't old.\n")
    (texts / "b.jsonl").write_text('{"text": "No."}\n{"tokens": ["Yes", "of course", "."]}\n')
    DocBin(docs=[Doc(nlp.vocab, words=["Oh", "?", "So", "."])]).to_disk(texts / "c.spacy")
    index, counts = indexed(nlp, texts)
    assert actual(index) == [
        ("a.txt:1", "A cat sat."),
        ("a.txt:1", "It slept!"),
        ("a.txt:3", "The bank isn't old."),
        ("b.jsonl:1", "No."),
        ("b.jsonl:2", "Yes of course ."),
        ("c.spacy:1", "Oh ?"),
        ("c.spacy:1", "So ."),
    ]
    assert sum(counts) == 22
    hit = index.search(nlp("The bank isn't old."), 1)[0]
    assert hit.text == "The bank isn't old." and hit.cosine == pytest.approx(1)


def test_spans_are_those_that_elmo_reads(weights, tmp_path):
    (tmp_path / "a.txt").write_text("A cat sat. It slept!\n")
    nlp = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.doc.v1"})
    assert actual(indexed(nlp, tmp_path / "a.txt")[0]) == [("a.txt:1", "A cat sat. It slept!")]


def test_what_stands_after_elmo_does_not_run(nlp, tmp_path):
    @Language.component("search_after")
    def after(doc):
        raise AssertionError("not to be run")

    nlp.add_pipe("search_after")
    (tmp_path / "a.txt").write_text("A cat sat.\n")
    assert len(indexed(nlp, tmp_path / "a.txt")[0]) == 1


def test_no_word(nlp, tmp_path):
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(ValueError, match="contains no words"):
        indexed(nlp, tmp_path / "a.txt")


@pytest.mark.parametrize("tokenized, words", [(False, ["is", "n't"]), (True, ["isn't"])])
def test_queries_are_read_as_the_corpus(nlp, weights, tmp_path, tokenized, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("isn't\n")
    about = corpus_source(nlp, weights.name, lang=None, tokenized=tokenized)
    index = SearchIndex(about=about)
    list(add_corpus(index, nlp, "a.txt", tokenized=tokenized))
    index.to_disk("index")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    index = SearchIndex.from_disk(tmp_path / "index")
    query = query_pipeline(index)("isn't")
    assert [token.text for token in query] == words
    assert index.search(query, 1)[0].cosine == pytest.approx(1)


def test_a_folder_with_the_name_of_a_bilm_is_not_taken_for_it(nlp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en_mini_v4").mkdir()
    about = corpus_source(nlp, "en_mini_v4", lang=None, tokenized=False)
    assert about["source"] == "en_mini_v4"


def test_another_pipeline_is_refused(nlp, weights, tmp_path):
    index = SearchIndex(about=corpus_source(nlp, str(weights), lang=None, tokenized=False))
    moved = tmp_path / "moved.safetensors"
    weights.rename(moved)
    with pytest.raises(OSError, match="w.safetensors"):
        query_pipeline(index)
    assert query_pipeline(index, str(moved))("A cat")._.elmo.shape == (2, 10)
    Weights.from_bilm(tiny.bilm(tiny.config(), seed=1), card={"language": "en"}).save(moved)
    with pytest.raises(ValueError, match="is not the pipeline of the index, or has changed"):
        query_pipeline(index, str(moved))
    for about in ({}, {**index.about, "lang": None}, {"pipeline": 1}):
        about.pop("lang", None)
        with pytest.raises(ValueError, match="does not name its pipeline"):
            query_pipeline(SearchIndex(about=about))
