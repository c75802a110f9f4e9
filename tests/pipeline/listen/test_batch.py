"""The batch that listeners and component share in training."""

import copy
import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.pipeline.listen.batch import ListenerBatch

VOCAB = spacy.blank("en").vocab


@pytest.fixture
def docs():
    return [Doc(VOCAB, words=["a", "b"]), Doc(VOCAB), Doc(VOCAB, words=["a", "b"])]


@pytest.fixture
def calls():
    return []


def batch_of(docs, calls, trained=True):
    def read(docs):
        calls.append("read")
        layers = [np.full((3, len(doc), 4), place, dtype="f") for place, doc in enumerate(docs)]
        return layers, calls.append if trained else None

    return ListenerBatch(docs, read)


def test_reads_once_and_late(docs, calls):
    batch = batch_of(docs, calls)
    assert not batch.was_read and calls == []
    assert [batch.layers_of(doc).sum() for doc in docs] == [0, 0, 48]
    assert batch.was_read and batch.trained and calls == ["read"]


def test_knows_its_docs_by_identity(docs, calls):
    """Hazard 6: equal words make no equal Doc."""
    batch = batch_of(docs, calls)
    assert batch.layers_of(Doc(VOCAB, words=["a", "b"])) is None
    assert calls == [] and batch.layers_of(docs[0]) is not None
    with docs[0].retokenize() as retokenizer:
        retokenizer.merge(docs[0][0:2])
    assert batch.layers_of(docs[0]) is None


def test_gradients_add_up_and_run_once(docs, calls):
    batch = batch_of(docs, calls)
    for value in (1, 2):
        layers = batch.layers_of(docs[0])
        batch.add_gradient(docs[0], np.full_like(layers, value))
    assert batch.backprop() == 24 * 9
    (_, gradient) = calls
    assert [g.sum() for g in gradient] == [72, 0, 0]
    assert batch.backprop() == 0 and len(calls) == 2


def test_gradients_of_float16_layers_add_up_in_float32(docs):
    actual = []
    layers = [np.zeros((3, len(doc), 4), dtype="float16") for doc in docs]
    batch = ListenerBatch(docs, lambda _: (layers, actual.append))
    for value in (2048, 0.5):  # float16 has no room for their sum
        batch.layers_of(docs[0])
        batch.add_gradient(docs[0], np.full((3, 2, 4), value, dtype="f"))
    batch.backprop()
    assert (actual[0][0] == 2048.5).all()


def test_nothing_to_run(docs, calls):
    batch = batch_of(docs, calls)
    assert batch.backprop() == 0
    batch = batch_of(docs, calls)
    batch.layers_of(docs[0])
    assert batch.backprop() == 0 and calls == ["read"]


def test_frozen(docs, calls):
    batch = batch_of(docs, calls, trained=False)
    batch.add_gradient(docs[0], np.ones_like(batch.layers_of(docs[0])))
    assert not batch.trained and batch.backprop() == 0


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))]
)
def test_copies_are_none(docs, calls, duplicate):
    assert duplicate(batch_of(docs, calls)) is None
