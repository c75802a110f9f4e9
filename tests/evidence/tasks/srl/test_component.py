"""The srl component: its labels, its loss, its view of a sentence, and the files of its corpora."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import DocBin
from spacy.training import Example
from tasks.srl.annotation import arguments, predicate_corpus, predicates
from tasks.srl.model import PLACES, seen_from_predicates
from thinc.api import Model

from tests.evidence.tasks import labelled
from tests.evidence.tasks.labelled import (
    SENTENCES,
    srl_doc,
    srl_examples,
    with_predicates,
    words_of,
)


@pytest.fixture
def trained():
    return labelled.trained("srl")


def read(nlp, *docs):
    return [arguments(doc) for doc in nlp.pipe(docs)]


def test_labels(trained):
    expected = ("ARG0", "ARG1", "ARG2", "ARGM-TMP", "R-ARG0")
    assert trained.get_pipe("srl").labels == expected


def test_probabilities(trained):
    doc = with_predicates(srl_doc(trained.vocab, *SENTENCES[0]))
    asked, left = trained.get_pipe("srl").predict([doc])
    assert asked.shape == left.shape == (7, 11)
    assert_allclose(asked.sum(axis=1), 1, rtol=1e-5)


def test_loss_is_the_mean_over_tokens_of_all_predicates():
    """Before the first step all tags are equally likely, whatever the number of Docs."""
    nlp = labelled.pipeline("srl")
    for batch in (srl_examples(nlp), srl_examples(nlp)[1:2]):
        srl = nlp.get_pipe("srl")
        scores, _ = srl.model.begin_update([example.predicted for example in batch])
        loss, gradients = srl.get_loss(batch, scores)
        assert loss == pytest.approx(np.log(11))
        # softmax - 1 at the right tag, softmax elsewhere: 2 * 10/11 per token, over all tokens.
        assert sum(np.abs(each).sum() for each in gradients) == pytest.approx(20 / 11, rel=1e-5)


def test_without_predicates_nothing_happens(trained):
    before = trained.get_pipe("srl").model.to_bytes()
    assert read(trained, trained.make_doc("It rains ."), trained.make_doc("")) == [{}, {}]
    doc = trained.make_doc("It rains .")
    assert trained.update([Example(doc, doc.copy())], sgd=False) == {"srl": 0.0}
    assert trained.get_pipe("srl").model.to_bytes() == before


def test_gradient_of_the_view_by_differences():
    """The gradient equals finite differences of a weighted sum of the output."""
    nlp = spacy.blank("en")
    docs = [with_predicates(srl_doc(nlp.vocab, *sentence)) for sentence in SENTENCES[:2]]
    random = np.random.default_rng(0)
    vectors = [random.normal(size=(len(doc), 3)) for doc in docs]
    received = []

    def lookup(model, docs, is_train):
        return vectors, lambda gradient: received.append(gradient) or docs

    model = seen_from_predicates(Model("lookup", lookup))
    views, backprop = model.begin_update(docs)
    width = 3 + 3 + PLACES
    assert [view.shape for view in views] == [(7, width), (7, width), (8, width), (8, width)]
    # Of the 8 words around "fell", the second, those from the sixth on are all far behind it.
    assert views[2][:, 6:].argmax(axis=1).tolist() == [3, 4, 5, 6, 7, 8, 8, 8]
    assert_array_equal(views[2][:, 6:].sum(axis=1), 1)
    assert_array_equal(views[1][6, :6], [*vectors[0][6], *vectors[0][4]])
    weights = [random.normal(size=view.shape).astype("f") for view in views]
    backprop(weights)

    def total():
        return sum((w * view).sum() for w, view in zip(weights, model.predict(docs), strict=True))

    for vector, gradient in zip(vectors, received[0], strict=True):
        for place in np.ndindex(vector.shape):
            before = vector[place]
            vector[place] = before + 0.5
            high = total()
            vector[place] = before - 0.5
            slope = high - total()
            vector[place] = before
            assert gradient[place] == pytest.approx(slope, abs=1e-4)


def test_files_keep_roles_and_the_reader_hands_on_predicates(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[srl_doc(nlp.vocab, *sentence) for sentence in SENTENCES]).to_disk(path)
    actual = list(predicate_corpus(path)(spacy.blank("en")))
    assert [arguments(example.reference) for example in actual] == [r for _, r in SENTENCES]
    assert [predicates(example.predicted) for example in actual] == [list(r) for _, r in SENTENCES]
    assert [arguments(example.predicted)[1] for example in actual[:2]] == [[], []]
    assert actual[0].predicted.spans["predicates"][0].label_ == "be.01"
    assert len(list(predicate_corpus(path, limit=2)(nlp))) == 2


def test_a_reader_without_a_file_says_what_to_give():
    with pytest.raises(ValueError, match=r"--paths.train and --paths.dev .*tasks\.srl\.convert"):
        list(predicate_corpus(None)(spacy.blank("en")))


def test_files_without_predicates_are_refused(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[nlp.make_doc("It rains")]).to_disk(path)
    with pytest.raises(ValueError, match=r"a\.spacy: 'It rains' has no span group 'predicates'"):
        list(predicate_corpus(path)(nlp))


def test_initialize_needs_predicates():
    nlp = labelled.blank("srl")
    doc = srl_doc(nlp.vocab, *SENTENCES[0])
    with pytest.raises(ValueError, match="PredicateCorpus"):
        nlp.initialize(lambda: [Example(words_of(doc), doc)])
