"""Occurrences of a word have the vectors of the component, and only the necessary parts of a corpus are processed."""

import json

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_elmo.lab.contexts.occurrences import find_in_sentences, find_occurrences
from spacy_elmo.lab.corpora.documents import Document, read_documents
from spacy_elmo.pipeline.encode.encoder import shim_of
from spacy_elmo.pipeline.encode.spans import rule_spans
from tests import pipelines, tiny

TEXTS = [
    "The bank is old.  It isn't a BANK\nof money.",
    "No such thing here.",
    "embankments",  # holds the letters, not the word
    "Their bank, my bank!",
]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    tiny.save(path, {"language": "en"})
    return pipelines.blank(path)


def find(nlp, texts, word, *args):
    return find_occurrences(
        nlp, (Document(text, f"{i}.txt") for i, text in enumerate(texts)), word, *args
    )


def test_occurrences_and_their_vectors(nlp):
    corpus = find(nlp, TEXTS, "Bank")
    found = [(o.left, o.word, o.right, o.source, o.sense) for o in corpus.items]
    assert found == [
        ("The ", "bank", " is old.", "0.txt", None),
        ("It isn't a ", "BANK", "", "0.txt", None),  # a new line ends a sentence
        ("Their ", "bank", ", my bank!", "3.txt", None),
        ("Their bank, my ", "bank", "!", "3.txt", None),
    ]
    docs = [nlp(TEXTS[0]), nlp(TEXTS[3])]
    tokens = [[t.i for t in doc if t.lower_ == "bank"] for doc in docs]
    expected = [doc._.elmo_layers[:, places] for doc, places in zip(docs, tokens, strict=True)]
    np.testing.assert_allclose(corpus.vectors, np.concatenate(expected, axis=1), atol=1e-5)
    # Of the passages with the word alone, and whitespace counts as nothing.
    words = [doc._.elmo_layers[:, [t.i for t in doc if not t.is_space]] for doc in docs]
    mean = np.concatenate(words, axis=1).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.centre, mean, atol=1e-5)
    seen = corpus.vectors - mean
    lengths = np.linalg.norm(seen, axis=-1, keepdims=True)
    np.testing.assert_allclose(corpus.unit_vectors, seen / lengths, atol=1e-4)
    assert corpus.views == ["layer 0", "layer 1", "layer 2"]


def test_views(nlp):
    layers = find(nlp, TEXTS, "bank").vectors
    average, top = find(nlp, TEXTS, "bank", "average"), find(nlp, TEXTS, "bank", "top")
    np.testing.assert_allclose(average.vectors, layers.mean(axis=0)[None], atol=1e-5)
    np.testing.assert_allclose(top.vectors, layers[2:], atol=1e-5)
    assert (average.views, top.views) == (["average of the layers"], ["layer 2"])


def test_several_words_are_the_mean_of_theirs(nlp):
    corpus = find(nlp, ["Near the New York bank.", "New things from york"], "new  york")
    assert [(o.left, o.word, o.right) for o in corpus.items] == [
        ("Near the ", "New York", " bank.")
    ]
    expected = nlp("Near the New York bank.")._.elmo_layers[:, 2:4].mean(axis=1)
    np.testing.assert_allclose(corpus.vectors[:, 0], expected, atol=1e-5)


def test_only_passages_with_the_word_are_read(nlp, monkeypatch):
    read = []
    shim = type(shim_of(nlp.get_pipe("elmo").model))
    predict = shim.predict

    def spy(self, inputs):
        read.append(1)
        return predict(self, inputs)

    made = []
    make_doc = nlp.make_doc
    monkeypatch.setattr(nlp, "make_doc", lambda text: made.append(text) or make_doc(text))
    monkeypatch.setattr(shim, "predict", spy)
    find(nlp, TEXTS[1:], "bank")
    assert made == ["bank", *TEXTS[2:]]
    assert len(read) == 1  # one batch, of the last text


@pytest.mark.parametrize(
    "word, text, found, tokens",
    [
        ("don't", "No, I don't.", ("No, I ", "don't", "."), [3, 4]),
        ("don't", "Don't go.", ("", "Don't", " go."), [0, 1]),
        ("DON'T", "Don't go.", ("", "Don't", " go."), [0, 1]),
        ("Don't", "DON'T GO.", ("", "DON'T", " GO."), [0]),  # which it does not split
        ("well-known", "A Well-Known bank", ("A ", "Well-Known", " bank"), [1, 2, 3]),
        (
            "well-known banks",
            "Two well-known banks",
            ("Two ", "well-known banks", ""),
            [1, 2, 3, 4],
        ),
        ("don't", ["I", "don't", "."], ("I ", "don't", " ."), [1]),
        ("don't", ["I", "do", "n't", "."], ("I ", "do n't", " ."), [1, 2]),
    ],
)
def test_words_that_the_tokenizer_splits(nlp, word, text, found, tokens):
    corpus = find(nlp, ["I do, you do not.", text, "Well, known."], word)
    assert [(o.left, o.word, o.right) for o in corpus.items] == [found]
    doc = nlp(text if isinstance(text, str) else Doc(nlp.vocab, words=text))
    expected = doc._.elmo_layers[:, tokens].mean(axis=1)
    np.testing.assert_allclose(corpus.vectors[:, 0], expected, atol=1e-5)
    queries = find_in_sentences(nlp, [text], word, corpus)
    assert [(o.left, o.word, o.right) for o in queries.items] == [found]


@pytest.mark.parametrize("word", ["", " \t"])
def test_no_word(nlp, word):
    with pytest.raises(ValueError, match="is not a word"):
        find(nlp, TEXTS, word)
    corpus = find(nlp, TEXTS, "bank")
    with pytest.raises(ValueError, match="is not a word"):
        find_in_sentences(nlp, ["My bank."], word, corpus)


def test_sentences_of_a_doc_are_found_once(nlp, monkeypatch):
    cut = []
    monkeypatch.setattr(
        "spacy_elmo.lab.contexts.occurrences.rule_spans",
        lambda docs: cut.extend(doc.text for doc in docs) or rule_spans(docs),
    )
    assert len(find(nlp, TEXTS, "bank").items) == 4
    assert cut == [TEXTS[0], TEXTS[3]]


def test_word_that_is_not_there(nlp):
    with pytest.raises(ValueError, match="'money' does not occur in the text"):
        find(nlp, TEXTS[1:], "money")


def test_queries_take_the_forms_of_the_corpus(nlp):
    corpus = find(nlp, TEXTS, "bank")
    sentences = ["The BANK, the bank.", ["a", "bank", "?"]]
    queries = find_in_sentences(nlp, sentences, "bank", corpus)
    assert [(o.left, o.word, o.right) for o in queries.items] == [
        ("The ", "BANK", ", the bank."), ("a ", "bank", " ?"),
    ]  # fmt: skip
    expected = nlp("The BANK, the bank.")._.elmo_layers[:, 1]
    np.testing.assert_allclose(queries.vectors[:, 0], expected, atol=1e-5)
    assert np.array_equal(queries.centre, corpus.centre)  # both are seen from one place
    assert find_in_sentences(nlp, [], "bank", corpus).vectors.shape == (3, 0, 10)
    with pytest.raises(ValueError, match="'No.' .*'bank'"):
        find_in_sentences(nlp, ["No."], "bank", corpus)


def test_layers_of_a_component_that_keeps_their_average(nlp, tmp_path):
    path = tmp_path / "w.safetensors"
    tiny.save(path, {"language": "en"})
    averaging = pipelines.blank(path, store="average")
    np.testing.assert_allclose(
        find(averaging, TEXTS, "bank").vectors, find(nlp, TEXTS, "bank").vectors, atol=1e-6
    )


def test_excerpt(nlp):
    (occurrence,) = find(nlp, ["One two, three four; 'bank', five six seven."], "bank").items
    assert occurrence.excerpt(2) == "four; 'BANK', five"
    assert occurrence.excerpt() == "One two, three four; 'BANK', five six seven."
    (alone,) = find(nlp, ["bank"], "bank").items
    assert alone.excerpt() == "BANK"


ANNOTATED = {
    "tokens": ["He", "banked", "the", "primary election", "."],
    "lemma": ["he", "bank", "the", "primary_election", "."],
    "sense": [None, "bank%2:40:00::", None, "primary_election%1:04:00::", None],
}


def test_annotated_text_is_searched_by_lemma_and_sense(nlp, tmp_path):
    other = {"tokens": ["bank"], "sense": [None]}  # the word, but no sense
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, (ANNOTATED, other))))
    (tmp_path / "b.txt").write_text("A bank.\n")
    read = list(read_documents(str(tmp_path), senses=True))
    corpus = find_occurrences(nlp, read, "bank")
    assert [(o.left, o.word, o.right, o.source, o.sense) for o in corpus.items] == [
        ("He ", "banked", " the primary election .", "a.jsonl:1", "bank%2:40:00::"),
        ("A ", "bank", ".", "b.txt:1", None),
    ]
    corpus = find_occurrences(nlp, read, "primary election")
    assert [o.word for o in corpus.items] == ["primary election"]
    words = ["He", "banked", "the", "primary", "election", "."]
    doc = nlp(Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(
        corpus.vectors[:, 0], doc._.elmo_layers[:, 3:5].mean(axis=1), atol=1e-5
    )
    queries = find_in_sentences(nlp, ["They banked."], "bank", find_occurrences(nlp, read, "bank"))
    assert [o.word for o in queries.items] == ["banked"]


def test_damaged_records_are_named(tmp_path):
    file = tmp_path / "a.jsonl"
    for text, problem in (
        ('{"tokens": ["a"], "sense": []}', "line 1: expected"),
        ("[1", "line 1 is not valid JSON"),
        ("[1]", "line 1: expected"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=problem):
            list(read_documents(str(file), senses=True))
