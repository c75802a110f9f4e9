"""Layers on Docs that were computed by earlier or by other weights: training does not use them, nor does prediction
after a change of the parameters from outside."""

import copy
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.pipeline.listen import scalar_mix
from tests import pipelines
from tests.pipelines import assert_same, listening

WORDS = pipelines.SENTENCES[0][0]


def fresh(nlp):
    return Doc(nlp.vocab, words=WORDS)


def expected(nlp):
    """The layers by the present weights, computed without any stored layers."""
    return nlp.get_pipe("elmo").model.predict([fresh(nlp)])[0]


def example_with_layers(nlp):
    """An Example whose Doc has layers, as the user of a training loop may have made them."""
    doc = nlp.get_pipe("elmo")(fresh(nlp))
    tags = [str(len(word)) for word in WORDS]
    return Example.from_dict(doc, {"tags": tags, "entities": pipelines.SENTENCES[0][1]})


@pytest.fixture
def mixed(monkeypatch):
    """The layers that the mixes read in training. They cannot be seen on these Docs, because `nlp.update` copies the
    Docs."""
    inputs, original = [], scalar_mix._mix

    def mix(model, h, trained):
        inputs.append(h)
        return original(model, h, trained)

    monkeypatch.setattr(scalar_mix, "_mix", mix)
    return inputs


@pytest.mark.parametrize("way", ["excluded", "disabled"])
def test_update_on_docs_with_layers_of_earlier_weights(weights, mixed, way):
    nlp = listening(weights)
    optimizer = pipelines.trained(nlp, 1)
    pipelines.awaken(nlp, "tagger")
    example = example_with_layers(nlp)
    old = example.predicted._.elmo_layers
    pipelines.step(nlp, optimizer)
    assert np.abs(expected(nlp) - old).max() > 1e-3
    with pytest.warns(UserWarning, match="did not run"):
        if way == "excluded":
            nlp.update([example], sgd=False, exclude=["elmo"])
        else:
            with nlp.select_pipes(disable="elmo"):
                nlp.update([example], sgd=False)
    assert_same(mixed[-1], expected(nlp))


def test_layers_of_another_pipeline(weights):
    """Its component has the same name and layers of the same shape."""
    nlp, other = listening(weights), pipelines.blank(weights)
    pipelines.trained(nlp, 0)
    pipelines.change(other, 1)
    doc = other(fresh(other))
    assert np.abs(doc._.elmo_layers - expected(nlp)).max() > 1e-3
    (listener,) = nlp.get_pipe("elmo").listeners
    with pytest.warns(UserWarning, match="did not run"):
        listener.begin_update([doc])
    assert_same(doc._.elmo_layers, expected(nlp))


def test_layers_of_the_present_weights_are_used(weights, mixed, monkeypatch):
    nlp = listening(weights, frozen=True)
    pipelines.trained(nlp, 1)
    example = example_with_layers(nlp)
    layers = expected(nlp)
    monkeypatch.setattr(nlp.get_pipe("elmo").model, "_func", lambda *args: 1 / 0)
    nlp.update([example], sgd=False, exclude=["elmo"])
    assert_same(mixed[-1], layers)


def test_layers_of_a_saved_doc(weights):
    """A saved Doc does not state which weights have computed its layers."""
    nlp = listening(weights)
    pipelines.trained(nlp, 1)
    doc = nlp.get_pipe("elmo")(fresh(nlp))
    doc._.elmo_layers[:] = 0
    doc = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    (listener,) = nlp.get_pipe("elmo").listeners
    assert not np.any(listener.predict([doc])[0])
    with pytest.warns(UserWarning, match="did not run"):
        listener.begin_update([doc])
    assert_same(doc._.elmo_layers, expected(nlp))


def test_layers_set_by_the_user_are_used(weights):
    nlp = listening(weights)
    pipelines.trained(nlp, 1)
    (listener,) = nlp.get_pipe("elmo").listeners
    doc = fresh(nlp)
    doc._.elmo_layers = np.ones_like(expected(nlp))
    (vectors,), _ = listener.begin_update([doc])
    assert np.ptp(vectors) < 1e-6 and abs(vectors[0, 0] - 1) < 0.1


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("update", [{}, {"exclude": ["elmo"]}], ids=["updated", "excluded"])
def test_layers_set_by_the_user_are_used_by_update(weights, mixed, frozen, update):
    """Nothing is computed for this Doc, so there is no warning."""
    nlp = listening(weights, frozen=frozen)
    pipelines.trained(nlp, 1)
    example = pipelines.examples(nlp)[0]
    example.predicted._.elmo_layers = np.full_like(expected(nlp), 2)
    nlp.update([example], sgd=False, **update)
    assert_array_equal(mixed[-1], np.full((3, len(WORDS), 10), 2, dtype="f"))


def test_layers_set_by_the_user_are_used_in_prediction(weights):
    """elmo must not run in this pipeline, because it would replace them."""
    nlp = listening(weights)
    pipelines.trained(nlp, 1)
    (listener,) = nlp.get_pipe("elmo").listeners
    doc = fresh(nlp)
    doc._.elmo_layers = np.ones_like(expected(nlp))
    with nlp.select_pipes(disable="elmo"):
        doc = nlp(doc)
    assert (doc._.elmo == 1).all() and np.ptp(listener.predict([doc])[0]) < 1e-6
    assert_same(nlp(doc)._.elmo_layers, expected(nlp))


def test_layers_set_by_the_user_have_no_gradient(weights):
    """The other Docs of the batch have a gradient."""
    found = []
    for number in (0, 1):
        nlp = listening(weights)
        pipelines.trained(nlp, 0)
        pipelines.awaken(nlp, "tagger")
        batch = pipelines.examples(nlp)
        batch[0].predicted._.elmo_layers = np.ones_like(expected(nlp))
        nlp.update(batch[number:], sgd=False)
        found.append(pipelines.gradients(nlp))
    both, without = found
    assert both.keys() == without.keys() and both
    for name, gradient in without.items():
        np.testing.assert_allclose(both[name], gradient, atol=1e-6)


def add(bilm):
    with torch.no_grad():
        bilm.lstm[0].bias.add_(1.0)


def load(bilm):
    bilm.load_state_dict({name: tensor + 0.5 for name, tensor in bilm.state_dict().items()})


def assign(bilm):
    state = {name: tensor + 0.5 for name, tensor in bilm.state_dict().items()}
    bilm.load_state_dict(state, assign=True)


@pytest.mark.parametrize("change", [add, load, assign])
def test_parameters_changed_from_outside(weights, change):
    """In prediction, and in the cache of training."""
    nlp = listening(weights, frozen=True)
    optimizer = pipelines.trained(nlp, 1)
    before = nlp(fresh(nlp))._.elmo_layers
    change(pipelines.bilm(nlp))
    reference = copy.deepcopy(nlp.get_pipe("elmo").model)
    (layers,) = reference.predict([fresh(nlp)])
    assert np.abs(layers - before).max() > 1e-3
    assert_same(nlp(fresh(nlp))._.elmo_layers, layers)
    batch = pipelines.examples(nlp)
    pipelines.step(nlp, optimizer, batch)
    assert_same(pipelines.training_layers(nlp, [batch[0].predicted])[0], layers)


def test_prediction_alone_keeps_the_version(weights):
    nlp = listening(weights)
    optimizer = pipelines.trained(nlp, 1)
    shim = nlp.get_pipe("elmo").model.shims[0]
    version = shim.version
    nlp("Anna met Bob.")
    nlp.to_bytes()
    with nlp.use_params({}):
        pass
    assert shim.version is version
    pipelines.awaken(nlp, "tagger")
    pipelines.step(nlp, optimizer)
    assert shim.version is not version


def test_weights_that_change_between_the_computation_and_the_writing(weights):
    """Another thread may change the weights: the stored version is that of the weights that computed the layers."""
    nlp = listening(weights)
    pipelines.trained(nlp, 0)
    elmo, doc = nlp.get_pipe("elmo"), fresh(nlp)
    computed = elmo.predict([doc])
    pipelines.change(nlp, 1)
    elmo.set_annotations([doc], computed)
    (listener,) = elmo.listeners
    with pytest.warns(UserWarning, match="did not run"):
        listener.begin_update([doc])
    assert_same(doc._.elmo_layers, expected(nlp))
    assert np.abs(expected(nlp) - computed[0]).max() > 1e-3


def test_huge_weights_whose_vectors_are_not_finite(weights):
    """The weights are finite, so they load; the vectors are not, and one warning reports it."""
    nlp = pipelines.blank(weights)
    with torch.no_grad():
        for parameter in pipelines.bilm(nlp).parameters():
            parameter.fill_(3e38)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        docs = [nlp(fresh(nlp)) for _ in range(3)]
    assert not np.isfinite(docs[0]._.elmo_layers).all()
    assert ["vectors that are not finite" in str(warning.message) for warning in caught] == [True]
