"""The option `precision`, from the config to the vectors."""

import warnings

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.bilm import model
from spacy_elmo.pipeline.encode.encoder import shim_of
from tests import pipelines

PRECISIONS = ["float32", "bfloat16"]
# Relative to the largest magnitude, at least 1, of the tiny network's layers.
BOUNDS = {"float32": 1e-5, "bfloat16": 3e-2}


def layers(nlp, text):
    return nlp(text)._.elmo_layers


def difference(found, expected):
    return np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_near_to_float32_but_not_the_same(weights, precision):
    nlp, exact = pipelines.blank(weights, precision=precision), pipelines.blank(weights)
    differences = [difference(layers(nlp, t), layers(exact, t)) for t in pipelines.TEXTS]
    assert max(differences) <= BOUNDS[precision]
    assert (max(differences) > 1e-6) == (precision != "float32")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_same_doc_same_vectors(weights, precision, monkeypatch):
    nlp = pipelines.blank(weights, precision=precision)
    alone = [layers(nlp, t) for t in pipelines.TEXTS]
    monkeypatch.setattr("spacy_elmo.pipeline.encode.encoder.MAX_WORDS", 7)
    for batch_size in (1, 2, 50):
        docs = list(nlp.pipe([*reversed(pipelines.TEXTS)], batch_size=batch_size))
        for doc, expected in zip(reversed(docs), alone, strict=True):
            assert difference(doc._.elmo_layers, expected) <= BOUNDS[precision]


SLOWER = 'precision = "bfloat16" may be much slower than "float32" here'


def test_a_processor_that_emulates_it(weights, monkeypatch, tmp_path):
    monkeypatch.setattr(model, "has_bfloat16", lambda device: False)
    nlp = pipelines.blank(weights, precision="bfloat16")
    with pytest.warns(UserWarning, match=SLOWER):
        nlp("a")
    nlp.to_disk(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp("a")  # said once
        spacy.load(tmp_path, config={"components.elmo.precision": "float32"})("a")


@pytest.mark.parametrize("said", [True, None])
def test_no_warning_where_it_is_fast_or_torch_does_not_say(weights, monkeypatch, said):
    monkeypatch.setattr(model, "has_bfloat16", lambda device: said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipelines.blank(weights, precision="bfloat16")("a")


@pytest.mark.parametrize("frozen", [True, False])
def test_prediction_follows_training(weights, frozen):
    nlp = pipelines.listening(weights, "tagger", frozen=frozen, precision="bfloat16")
    optimizer = pipelines.trained(nlp)
    pipelines.awaken(nlp, "tagger")
    before = layers(nlp, "Anna met Bob")
    pipelines.step(nlp, optimizer)
    assert (difference(layers(nlp, "Anna met Bob"), before) > 1e-4) == (not frozen)
    with nlp.use_params({}):
        pass
    assert nlp.get_pipe("elmo").model.shims[0].options.precision == "bfloat16"


def test_frozen_training_sees_what_prediction_sees(weights):
    nlp = pipelines.listening(weights, "tagger", frozen=True, precision="bfloat16")
    pipelines.trained(nlp)
    elmo, (listener,) = nlp.get_pipe("elmo"), nlp.get_pipe("elmo").listeners
    docs = [Doc(nlp.vocab, words=words) for words, _ in pipelines.SENTENCES]
    elmo.update([spacy.training.Example(doc, doc.copy()) for doc in docs], sgd=False)
    vectors, _ = listener.begin_update(docs)
    for doc, found in zip(docs, vectors, strict=True):
        (expected,) = listener.predict([elmo(Doc(nlp.vocab, words=[t.text for t in doc]))])
        assert difference(found, expected) <= 1e-2


def test_kept_layers_are_those_of_the_precision(weights):
    digests = {
        shim_of(pipelines.blank(weights, precision=p).get_pipe("elmo").model).digest()
        for p in PRECISIONS
    }
    assert len(digests) == 2


def test_words_are_remembered_until_the_weights_change(weights):
    nlp = pipelines.blank(weights)
    before = layers(nlp, "Anna met Bob")
    pipelines.bilm(nlp).encoder.characters.data += 1
    np.testing.assert_array_equal(layers(nlp, "Anna met Bob"), before)
    pipelines.change(nlp, 0)
    assert difference(layers(nlp, "Anna met Bob")[0], before[0]) > 1e-2


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "mode", [lambda: torch.autocast("cpu", torch.bfloat16), torch.inference_mode]
)
def test_what_the_caller_has_switched_on_is_of_no_account(weights, mode, precision):
    """A precision that the caller has set in torch changes neither these vectors nor the cached ones."""
    nlp, texts = pipelines.blank(weights, precision=precision), ["Hi", *pipelines.TEXTS]
    expected = [layers(nlp, text) for text in texts]
    nlp = pipelines.blank(weights, precision=precision)
    with mode():
        found = [layers(nlp, text) for text in texts]
    found_later = [layers(nlp, text) for text in [*texts, "Other words"]]
    for got, later, wanted in zip(found, found_later, expected, strict=False):
        np.testing.assert_allclose(got, wanted, atol=1e-6)
        np.testing.assert_allclose(later, wanted, atol=1e-6)


def test_weights_loaded_in_inference_mode_can_be_trained(weights):
    nlp = pipelines.listening(weights, "tagger", frozen=False)
    with torch.inference_mode():
        optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before = pipelines.parameters(nlp)
    pipelines.step(nlp, optimizer)
    assert any((before[name] != value).any() for name, value in pipelines.parameters(nlp).items())


def test_no_copy_of_old_weights_is_kept(weights):
    nlp = pipelines.listening(weights, "tagger", frozen=False)
    optimizer = pipelines.trained(nlp)
    pipelines.awaken(nlp, "tagger")
    nlp("a")
    shim = shim_of(nlp.get_pipe("elmo").model)
    assert shim._inference_bilm is not None
    pipelines.step(nlp, optimizer)
    assert shim._inference_bilm is None
