"""`doc.vector`, `similarity` and the like, computed from the ELMo vectors."""

import pickle

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc

from spacy_elmo.pipeline.store.hooks import set_hooks
from tests import pipelines

TEXT = "Anna met Bob in Paris.\nIt rained."


@pytest.fixture
def doc(weights):
    return pipelines.blank(weights, hooks=True)(TEXT)


def cosine(one, other):
    return one @ other / np.sqrt((one @ one) * (other @ other))


def test_off_unless_asked_for(nlp):
    doc = nlp(TEXT)
    assert not (doc.user_hooks or doc.user_span_hooks or doc.user_token_hooks)
    assert not doc.has_vector and doc.vector.size == 0


def test_vectors(doc):
    words = [token.i for token in doc if not token.is_space]
    assert len(words) == len(doc) - 1
    assert_allclose(doc.vector, doc._.elmo[words].mean(axis=0), atol=1e-6)
    assert_allclose(doc[0:3].vector, doc._.elmo[0:3].mean(axis=0), atol=1e-6)
    assert_array_equal(doc[2].vector, doc._.elmo[2])
    assert doc.has_vector and doc[0:3].has_vector and doc[2].has_vector
    (space,) = set(range(len(doc))) - set(words)
    assert not doc[space].has_vector and not doc[space].vector.any()
    for thing in (doc, doc[0:3], doc[2]):
        assert_allclose(thing.vector_norm, np.linalg.norm(thing.vector), rtol=1e-5)


def test_similarity_of_all_kinds(doc):
    things = [doc, doc[0:3], doc[5:], doc[2], doc[4]]
    for one in things:
        for other in things:
            expected = cosine(one.vector, other.vector)
            assert one.similarity(other) == pytest.approx(expected, abs=1e-6)
    assert isinstance(doc.similarity(doc[0]), float)


def test_equal_words_in_other_places_are_not_the_same(weights):
    """Without a hook, spaCy returns 1 for equal words without looking at vectors."""
    doc = pipelines.blank(weights, hooks=True)("a bank by the river, a bank for money")
    one, other = (token for token in doc if token.text == "bank")
    assert one.similarity(other) < 1 - 1e-4
    assert one.similarity(one) == pytest.approx(1, abs=1e-6)


def test_norm_follows_the_vectors(doc):
    """spaCy stores the norm of a Doc, and would divide later vectors by it."""
    before = doc.vector_norm
    doc._.elmo_layers = doc._.elmo_layers * 2
    assert doc.vector_norm == pytest.approx(2 * before, rel=1e-5)
    assert doc.similarity(doc[0:2]) == pytest.approx(cosine(doc.vector, doc[0:2].vector), abs=1e-6)


def test_without_layers_as_spacy_without_vectors(doc):
    part = doc[0:3].as_doc()
    assert not part.has_vector and part.vector.shape == (0,) and part.vector_norm == 0
    with pytest.warns(UserWarning, match="W008"):
        assert part.similarity(doc) == 0
    assert doc.has_vector
    doc._.elmo_layers = None
    assert not doc[0].has_vector and not doc[0:2].has_vector


def test_vectors_of_another_kind(doc, other_weights):
    other = pipelines.blank(other_weights, hooks=True)(TEXT)
    with pytest.raises(ValueError, match="width 10 cannot be compared with one of width 8"):
        doc.similarity(other)


def test_copies_of_docs_keep_them(doc):
    for copied in (doc.copy(), pickle.loads(pickle.dumps(doc))):
        assert_array_equal(copied.vector, doc.vector)


def test_serialized_docs_get_them_back(weights, doc):
    with pytest.warns(UserWarning, match="W109"):
        data = doc.to_bytes()
    loaded = Doc(spacy.blank("en").vocab).from_bytes(data)
    assert not loaded.has_vector
    set_hooks(loaded)
    assert_array_equal(loaded.vector, doc.vector)


def test_with_the_average_alone(weights, doc):
    average = pipelines.blank(weights, hooks=True, store="average")(TEXT)
    assert_allclose(average.vector, doc.vector, atol=1e-6)
    assert_allclose(average[0:3].vector, doc[0:3].vector, atol=1e-6)
