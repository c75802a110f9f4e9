"""The options `store` and `dtype`: which values stay on Docs."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests import pipelines
from tests.pipelines import TEXTS, assert_same

AVERAGE = {"store": "average"}
HALF = {"dtype": "float16"}


def docs_by(weights, **options):
    return list(pipelines.blank(weights, **options).pipe(TEXTS))


@pytest.fixture(scope="module")
def plain(weights):
    return docs_by(weights)


def vectors(doc):
    """Return all values of `_.elmo`: of the Doc, of each token, of its spans of three tokens."""
    spans = [doc[start : start + 3] for start in range(len(doc))]
    return [doc._.elmo, *(token._.elmo for token in doc), *(span._.elmo for span in spans)]


@pytest.mark.parametrize(
    "options, exact", [(AVERAGE, True), (HALF, False), (AVERAGE | HALF, False)]
)
def test_vectors_are_the_same_float32_whatever_is_kept(weights, plain, options, exact):
    for doc, expected in zip(docs_by(weights, **options), plain, strict=True):
        for got, vector in zip(vectors(doc), vectors(expected), strict=True):
            assert got.dtype == np.float32 and got.shape == vector.shape
            np.testing.assert_allclose(got, vector, atol=1e-6 if exact else 2e-3)


def test_the_average_alone(weights, plain):
    for doc in docs_by(weights, **AVERAGE):
        assert doc._.elmo_layers is None
        assert doc[:1]._.elmo_layers is None
        assert [token._.elmo_layers for token in doc] == [None] * len(doc)
        kept = array_on(doc)
        assert kept.shape == (len(doc), 10)
        vector = doc._.elmo
        vector += 1  # the user's own
        assert len(doc) == 0 or (doc._.elmo != vector).all()


def array_on(doc):
    (stored,) = doc.user_data.values()
    (kept,) = stored.values()
    return kept["layers"]


def test_half_as_much(weights, plain):
    for doc, expected in zip(docs_by(weights, **HALF), plain, strict=True):
        layers = doc._.elmo_layers
        assert layers.dtype == np.float16
        np.testing.assert_array_equal(layers, expected._.elmo_layers.astype("float16"))
        assert layers.nbytes * 2 == expected._.elmo_layers.nbytes


@pytest.mark.parametrize("options", [AVERAGE, HALF, AVERAGE | HALF])
def test_saved_docs(weights, options):
    docs = docs_by(weights, **options)
    binary = DocBin(store_user_data=True, docs=docs).to_bytes()
    vocab = spacy.blank("en").vocab
    read = list(DocBin().from_bytes(binary).get_docs(vocab))
    read += [Doc(vocab).from_bytes(doc.to_bytes()) for doc in docs]
    for got, doc in zip(read, docs * 2, strict=True):
        kept, expected = array_on(got), array_on(doc)
        assert kept.dtype == expected.dtype
        np.testing.assert_array_equal(kept, expected)
        np.testing.assert_array_equal(got._.elmo, doc._.elmo)


@pytest.mark.parametrize("options", [AVERAGE, HALF])
def test_other_tokens_than_it_was_written_for(weights, options):
    doc = docs_by(weights, **options)[0]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    for ask in (lambda: doc._.elmo, lambda: doc[0]._.elmo, lambda: doc._.elmo_layers):
        with pytest.raises(ValueError, match="8 tokens was retokenized .* for 9"):
            ask()


def test_cleaned(weights):
    for attribute in ("_.elmo", "_.elmo_layers"):
        nlp = pipelines.blank(weights, **AVERAGE)
        nlp.add_pipe("doc_cleaner", config={"attrs": {attribute: None}})
        assert nlp(TEXTS[0])._.elmo is None


def test_nothing_listens_to_an_average(weights):
    nlp = pipelines.blank(weights, **AVERAGE)
    with pytest.raises(ValueError, match="'tagger' listens to 'elmo'.*doc_cleaner"):
        pipelines.add_tagger(nlp)


def test_what_the_message_says(weights):
    """The two ways that the error message names: a listener, and a doc_cleaner after it."""
    nlp = pipelines.listening(weights, frozen=True)
    pipelines.trained(nlp)
    nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})
    doc = nlp(TEXTS[0])
    assert doc[0].tag_ and doc._.elmo_layers is None


def test_a_listener_takes_no_average_for_layers(weights):
    """These Docs have stored averages under the same name of the component, with as many tokens as layers have rows."""
    ours, theirs = pipelines.listening(weights, frozen=True), pipelines.blank(weights, **AVERAGE)
    pipelines.trained(ours)
    words = ["a"] * 10
    doc = theirs(Doc(ours.vocab, words=words))
    mix = ours.get_pipe("tagger").model.get_ref("tok2vec")
    with pytest.warns(UserWarning, match="computed on demand"):
        (got,) = mix.predict([doc])
    (expected,) = mix.predict([ours.get_pipe("elmo")(Doc(ours.vocab, words=words))])
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_training_sees_what_prediction_sees(weights):
    """The cache needs half of the memory, and a consumer reads the same with it, without it, and in prediction."""
    nlp = pipelines.listening(weights, frozen=True, **HALF)
    pipelines.trained(nlp, 0)
    elmo, tok2vec = nlp.get_pipe("elmo"), nlp.get_pipe("tagger").model.get_ref("tok2vec")
    for _ in range(2):
        batch = pipelines.examples(nlp)
        elmo.update(batch)
        docs = [example.predicted for example in batch]
        in_training, _ = tok2vec.begin_update(docs)
        elmo.source.backward()
        in_prediction = tok2vec.predict([elmo(doc) for doc in docs])
        for one, other, doc in zip(in_training, in_prediction, docs, strict=True):
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, atol=1e-6)
            layers = doc._.elmo_layers
            assert layers.dtype == np.float16
            np.testing.assert_allclose(one, layers.astype("f").mean(0), atol=1e-6)


def test_workers(weights):
    nlp = pipelines.blank(weights, **(AVERAGE | HALF))
    expected = [doc._.elmo for doc in nlp.pipe(TEXTS)]
    for doc, vector in zip(nlp.pipe(TEXTS, n_process=2), expected, strict=True):
        assert_same(doc._.elmo, vector)
