"""The component of each task learns its examples, and predicts the same after saving."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.training import Example

from tests.evidence.tasks.labelled import LISTENER, TASKS, blank, pipeline, trained

every = pytest.mark.parametrize("name", sorted(TASKS))


def predicted(nlp, name, docs):
    """Return the arrays of all predictions in one list. A prediction of coref has several arrays."""
    predictions = nlp.get_pipe(name).predict(docs)
    parts = (each if isinstance(each, tuple) else (each,) for each in predictions)
    return [np.asarray(array) for arrays in parts for array in arrays]


def given(nlp, name):
    return [example.predicted for example in TASKS[name].examples(nlp)]


def has_learnt(nlp, name):
    task = TASKS[name]
    labelled = [task.annotation(example.reference) for example in task.examples(nlp)]
    return [task.annotation(doc) for doc in nlp.pipe(given(nlp, name))] == labelled


@every
def test_examples_are_learnt(name):
    nlp = trained(name)
    assert has_learnt(nlp, name)
    assert nlp.evaluate(TASKS[name].examples(nlp))[TASKS[name].score] == 1


@every
def test_journeys(name, tmp_path):
    nlp = trained(name)
    nlp.to_disk(tmp_path)
    fresh = pipeline(name)
    fresh.from_bytes(nlp.to_bytes())
    expected = predicted(nlp, name, given(nlp, name))
    for other in (spacy.load(tmp_path), fresh):
        actual = predicted(other, name, given(other, name))
        for one, another in zip(actual, expected, strict=True):
            assert_allclose(one, another, atol=1e-5)
        assert has_learnt(other, name)


@every
def test_batch_mates_change_nothing(name):
    nlp = trained(name)
    docs = given(nlp, name)
    alone = [array for doc in docs for array in predicted(nlp, name, [doc])]
    for one, other in zip(predicted(nlp, name, docs), alone, strict=True):
        assert_allclose(one, other, atol=1e-5)


@every
def test_same_seed_same_weights(name):
    one, other = (pipeline(name, steps=3).get_pipe(name).model.to_bytes() for _ in range(2))
    assert one == other


@every
def test_listener_is_trained(name):
    nlp = pipeline(name, LISTENER, steps=3)
    (mix,) = (node for node in nlp.get_pipe(name).model.walk() if node.name == "elmo-mix")
    assert mix.get_param("scalars").any() and mix.get_param("scale").any()


@pytest.mark.parametrize(
    "name, kind", [("coref", "cluster"), ("qa", "answer"), ("srl", "argument")]
)
def test_initialize_needs_labels(name, kind):
    nlp = blank(name)
    doc = given(nlp, name)[0]
    with pytest.raises(ValueError, match=f"'{name}' found no {kind} in the training Docs"):
        nlp.initialize(lambda: [Example(doc, doc.copy())])
