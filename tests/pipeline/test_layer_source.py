"""The source of layers: the batch of an update, what is computed and when, and the gradients of several listeners."""

import copy
import gc
import pickle
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc

from tests import pipelines
from tests.pipelines import assert_same, counted

WORDS = (["a", "b"], [], ["a", "b"])


@pytest.fixture
def docs(nlp):
    return [Doc(nlp.vocab, words=words) for words in WORDS]


@pytest.fixture
def trained(weights):
    return pipelines.blank(weights, frozen=False).get_pipe("elmo").source


@pytest.fixture
def computed(trained, monkeypatch):
    """Return a list of how many Docs are computed at a time."""
    return counted(trained.model, monkeypatch)


def gradients(source):
    """Return the gradients of the biLM, and remove them."""
    named = dict(source.model.shims[0].bilm.named_parameters())
    found = {n: p.grad.numpy().copy() for n, p in named.items() if p.grad is not None}
    for parameter in named.values():
        parameter.grad = None
    return found


def ones(layers, factor=1.0):
    return [np.full(array.shape, factor, dtype="f") for array in layers]


def test_computes_once_and_late(trained, docs, computed):
    trained.begin(docs)
    assert computed == []
    for order in (docs, docs[::-1]):
        layers, add_gradient = trained.layers(order, True)
        assert [array.shape for array in layers] == [(3, len(doc), 10) for doc in order]
        assert add_gradient is not None
    for doc in docs:  # for a consumer that predicts in the middle of a step
        (array,) = trained.layers([doc], False)[0]
        assert array.shape == (3, len(doc), 10)
    assert computed == [3]


@pytest.mark.filterwarnings("ignore:'elmo' did not run:UserWarning")
def test_knows_its_docs_by_identity(trained, docs, computed):
    """Docs of equal words are different Docs. A Doc whose tokens have changed is computed again."""
    trained.begin(docs)
    trained.layers(docs, True)
    other = Doc(docs[0].vocab, words=WORDS[0])
    with docs[2].retokenize() as retokenizer:
        retokenizer.merge(docs[2][0:2])
    (_, one, two), add_gradient = trained.layers([docs[0], other, docs[2]], True)
    assert computed == [3, 2] and (one.shape[1], two.shape[1]) == (2, 1)
    add_gradient(ones([trained.layers(docs[:1], True)[0][0], one, two]))
    assert trained.backward() == 3 * 2 * 10  # of docs[0] alone


def test_copies_are_known(trained, docs, computed):
    """EntityLinker trains on copies of the Docs of the update."""
    whole = Doc(docs[0].vocab, words=["a", "cat", "sat"])
    trained.begin([whole])
    layers, add_gradient = trained.layers([whole.copy()], True)
    add_gradient(ones(layers))
    assert computed == [1] and trained.backward() == 3 * 3 * 10
    assert gradients(trained)


def test_gradients_add_up_and_run_once(trained, docs):
    trained.begin(docs)
    for factor in (1, 2):
        layers, add_gradient = trained.layers(docs[:1], True)
        add_gradient(ones(layers, factor))
    assert trained.backward() == 60 * 9
    found = gradients(trained)
    assert trained.backward() == 0 and not gradients(trained)
    trained.begin(docs)
    layers, add_gradient = trained.layers(docs, True)
    add_gradient([*ones(layers[:1], 3), *ones(layers[1:], 0)])
    assert trained.begin([]) == 60 * 9
    expected = gradients(trained)
    assert found.keys() == expected.keys() and expected
    for name, gradient in expected.items():
        assert_allclose(found[name], gradient, atol=1e-6)


def test_gradients_of_float16_layers_add_up_in_float32(weights, docs):
    source = pipelines.blank(weights, frozen=False, dtype="float16").get_pipe("elmo").source
    source.begin(docs)
    for factor in (2048, 0.5):  # float16 has no room for their sum
        layers, add_gradient = source.layers(docs[:1], True)
        assert layers[0].dtype == np.float16
        add_gradient(ones(layers, factor))
    assert source.backward() == pytest.approx(60 * 2048.5**2, rel=1e-6)


def test_a_batch_that_was_not_read_goes_on(trained, docs, computed):
    """`nlp.update(examples, sgd=sgd)` calls `finish_update` before any listener has read it."""
    trained.begin(docs)
    assert trained.backward() == 0
    layers, add_gradient = trained.layers(docs, True)
    add_gradient(ones(layers))
    assert trained.backward() == 120 and computed == [3]


@pytest.mark.parametrize("frozen", [False, True])
def test_weights_that_are_loaded_while_a_batch_is_open(weights, docs, frozen):
    """The layers of the new weights replace those of the old ones, and the gradient of the old weights is dropped."""
    nlp = pipelines.blank(weights, frozen=frozen)
    elmo = nlp.get_pipe("elmo")
    other = pipelines.blank(weights)
    pipelines.change(other, 1)
    elmo.source.begin(docs)
    old, add_gradient = elmo.source.layers(docs, True)
    elmo.from_bytes(other.get_pipe("elmo").to_bytes())
    if add_gradient is not None:
        add_gradient(ones(old))
    with nullcontext() if frozen else pytest.warns(UserWarning, match="gradient is lost"):
        assert elmo.source.backward() == 0
    assert not gradients(elmo.source)
    elmo.source.begin(docs)
    old, _ = elmo.source.layers(docs, True)
    elmo.from_bytes(pipelines.blank(weights).get_pipe("elmo").to_bytes())
    new, add_gradient = elmo.source.layers(docs, True)
    assert np.abs(new[0] - old[0]).max() > 1e-3
    for array, doc in zip(new, docs, strict=True):
        assert_same(array, elmo.model.predict([doc])[0])
    if not frozen:
        add_gradient(ones(new))
        assert elmo.source.backward() == 120 and gradients(elmo.source)


@pytest.mark.filterwarnings("ignore:'elmo' did not run:UserWarning")
def test_layers_on_demand_are_computed_into_the_doc(nlp, docs, monkeypatch):
    """The Doc stores the computed array itself, not a copy."""
    source, computed = nlp.get_pipe("elmo").source, []
    original = source.model._func

    def keep(model, docs, is_train):
        layers, backprop = original(model, docs, is_train)
        computed.extend(layers)
        return layers, backprop

    monkeypatch.setattr(source.model, "_func", keep)
    layers = source.layers(docs, False)[0]
    for array, doc, own in zip(layers, docs, computed, strict=True):
        assert array is own is doc._.elmo_layers


@pytest.mark.filterwarnings("ignore:'elmo' did not run:UserWarning")
def test_nobody_adds_a_gradient(trained, docs):
    """With a gradient of zeros the optimizer would decay the parameters. Docs outside of the batch have no gradient."""
    trained.begin(docs)
    trained.layers(docs, True)
    _, add_gradient = trained.layers([Doc(docs[0].vocab, words=["cat"])], True)
    assert add_gradient is None
    assert trained.backward() == 0 and not gradients(trained)


def test_frozen_uses_layers_of_the_present_weights_on_a_doc(weights, monkeypatch):
    """With annotating_components, nothing is computed twice."""
    nlp = pipelines.listening(weights, frozen=True, cache_mb=0)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    computed = counted(nlp.get_pipe("elmo").model, monkeypatch)
    pipelines.step(nlp, optimizer, annotates=["elmo"])
    assert sum(computed) == 3


def test_layers_from_elsewhere_are_not_those_of_the_weights(nlp):
    """`set_annotations` with other layers, on a Doc that has those of the component."""
    elmo, doc = nlp.get_pipe("elmo"), nlp("a b")
    expected = doc._.elmo_layers.copy()
    elmo.set_annotations([doc], [np.ones_like(expected)])
    assert_array_equal(*elmo.source.layers([doc], False)[0], np.ones_like(expected))
    elmo.source.begin([doc])
    (layers,), _ = elmo.source.layers([doc], True)
    assert_array_equal(layers, expected)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))]
)
def test_copies_have_no_batch(trained, docs, duplicate):
    trained.begin(docs)
    layers, add_gradient = trained.layers(docs, True)
    add_gradient(ones(layers))
    copied = duplicate(trained)
    assert copied.backward() == 0 and not gradients(copied)
    assert trained.backward() == 120 and gradients(trained)
    assert_same(copied.compute(docs)[0], layers[0])


def test_errors_in_a_step_do_not_reach_the_next_one(trained, docs, monkeypatch):
    """Memory runs out in the forward or in the backward pass, and the caller goes on with a smaller batch."""
    forward = trained.model._func
    monkeypatch.setattr(trained.model, "_func", lambda model, docs, is_train: 1 / 0)
    trained.begin(docs)
    with pytest.raises(ZeroDivisionError):
        trained.layers(docs, True)

    def fails_later(model, docs, is_train):
        return forward(model, docs, is_train)[0], lambda d_layers: 1 / 0

    monkeypatch.setattr(trained.model, "_func", fails_later)
    trained.begin(docs)
    layers, add_gradient = trained.layers(docs, True)
    add_gradient(ones(layers))
    with pytest.raises(ZeroDivisionError):
        trained.backward()
    monkeypatch.undo()
    assert trained.begin(docs[:1]) == 0
    layers, add_gradient = trained.layers(docs[:1], True)
    add_gradient(ones(layers))
    assert trained.backward() == 60


@pytest.mark.parametrize("frozen", [True, False])
def test_a_step_leaves_nothing_behind(weights, docs, frozen):
    """After a step, no Docs and no arrays of it stay in memory, except those in the cache."""
    source = pipelines.blank(weights, frozen=frozen, cache_mb=0).get_pipe("elmo").source
    source.begin(docs)
    layers, add_gradient = source.layers(docs, True)
    kept = [weakref.ref(array) for array in layers]
    source.backward()
    del layers, add_gradient
    gc.collect()
    assert [array() for array in kept] == [None] * 3
