"""numpy's matrix products for one pipeline."""

import copy
import multiprocessing
import pickle

import pytest
import spacy
from spacy.util import registry
from thinc.api import NumpyOps

from tests.pipelines import TEXTS, examples, listening, trained

CALLBACK = {"@callbacks": "spacy-elmo.kernel_products.v1"}


def use_blis(nlp):
    """Return which products the nodes of the pipeline have."""
    models = [component.model for _, component in nlp.components]
    return {node.ops.use_blis for model in models for node in model.walk()}


def predictions(nlp, **options):
    docs = list(nlp.pipe(TEXTS, **options))
    return [[(token.tag_, token.ent_type_) for token in doc] for doc in docs]


@pytest.fixture
def folder(weights, tmp_path):
    """A trained pipeline whose config has the callback."""
    nlp = listening(weights, "tagger", "ner")
    trained(nlp, steps=3)
    nlp.config["nlp"]["after_pipeline_creation"] = CALLBACK
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_only_this_pipeline_multiplies_with_numpy(folder):
    other = spacy.load(folder, config={"nlp": {"after_pipeline_creation": None}})
    nlp = spacy.load(folder)
    assert use_blis(nlp) == {False}
    assert use_blis(other) == {True}
    assert predictions(nlp) == predictions(other)


def test_copies_keep_numpys_products(folder):
    nlp = spacy.load(folder)
    assert use_blis(copy.deepcopy(nlp)) == use_blis(pickle.loads(pickle.dumps(nlp))) == {False}


def test_spawned_processes_predict_the_same(folder, monkeypatch):
    nlp = spacy.load(folder)
    expected = predictions(nlp)
    monkeypatch.setattr(spacy.language, "mp", multiprocessing.get_context("spawn"))
    assert predictions(nlp, n_process=2) == expected


def test_a_resized_output_predicts_and_trains(folder):
    nlp = spacy.load(folder)
    nlp.get_pipe("ner").add_label("ORG")
    optimizer = nlp.resume_training()
    losses = nlp.update(examples(nlp), sgd=optimizer)
    assert losses["ner"] > 0
    assert "ORG" in nlp.get_pipe("ner").labels


def test_other_ops_stay(folder):
    """thinc's classes for GPUs and for Apple's processors have faster products than numpy."""

    class AppleOps(NumpyOps):
        pass

    nlp = spacy.load(folder, config={"nlp": {"after_pipeline_creation": None}})
    apple = AppleOps()
    for node in nlp.get_pipe("tagger").model.walk():
        node.ops = apple
    registry.callbacks.get("spacy-elmo.kernel_products.v1")()(nlp)
    assert {node.ops for node in nlp.get_pipe("tagger").model.walk()} == {apple}
