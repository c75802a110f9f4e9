"""What the component's own training changes and what it does not."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from thinc.api import SGD, Adam

from tests import pipelines
from tests.pipelines import gradients, listening


@pytest.mark.parametrize("cache_mb", [0, 1])
def test_layers_on_training_docs_are_not_trusted(weights, cache_mb):
    """Other weights may have computed them: those before `initialize`, or those of another user who saved the Docs."""
    nlp = listening(weights, frozen=True, cache_mb=cache_mb)
    nlp.initialize(lambda: pipelines.examples(nlp))
    elmo, batch = nlp.get_pipe("elmo"), pipelines.examples(nlp)
    docs = [example.predicted for example in batch]
    expected = elmo.predict(docs)
    elmo.set_annotations(docs, [np.full_like(layers, 9) for layers in expected])
    elmo.update(batch)
    for actual, layers in zip(elmo.listeners[0].predict(docs), expected, strict=True):
        assert_allclose(actual, layers.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    "trainable, expected",
    [("all", {"encoder", "lstm.0", "lstm.1"}), ("lstm", {"lstm.0", "lstm.1"}), ("top", {"lstm.1"})],
)
def test_unfrozen_moves_what_is_trainable(weights, trainable, expected):
    nlp = listening(weights, trainable=trainable)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before = pipelines.parameters(nlp)
    assert pipelines.step(nlp, optimizer)["elmo"] > 0
    changed = pipelines.changed(before, pipelines.parameters(nlp))
    assert {n.split(".")[0] if n.startswith("encoder") else n[:6] for n in changed} == expected
    assert {n for n in before if n.startswith(tuple(expected))} == changed


@pytest.mark.parametrize("layers", ["top", 0, "mix"])
def test_choice_of_layers_and_the_gradient(weights, layers):
    """The context-free layer trains the token encoder alone."""
    nlp = pipelines.blank(weights, frozen=False)
    pipelines.add_tagger(nlp, layers=layers)
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before = pipelines.parameters(nlp)
    pipelines.step(nlp, SGD(0.1, L2=0.0))
    changed = pipelines.changed(before, pipelines.parameters(nlp))
    assert any(name.startswith("encoder") for name in changed)
    assert any(name.startswith("lstm") for name in changed) == (layers != 0)


def test_grad_factor_stops_or_scales_the_gradient(weights):
    actual = {}
    for factor in (1.0, 0.5, 0.0):
        nlp = pipelines.blank(weights, frozen=False)
        pipelines.add_tagger(nlp, grad_factor=factor)
        nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        pipelines.awaken(nlp, "tagger")
        nlp.update(pipelines.examples(nlp), sgd=False)
        actual[factor] = gradients(nlp)
    assert actual[0.0] == {}
    for name, gradient in actual[1.0].items():
        assert_allclose(actual[0.5][name], gradient / 2, atol=1e-7)


@pytest.mark.parametrize("trainable", ["all", "lstm", "top"])
def test_gradient_of_the_whole_chain(weights, trainable):
    """Two taggers with a mix each, against one graph of torch over all of it."""
    nlp = listening(weights, "one", "two", trainable=trainable)
    nlp.initialize(lambda: pipelines.examples(nlp))
    for seed, name in enumerate(("one", "two")):
        random = np.random.default_rng(seed)
        mix, output = pipelines.mix_and_output(nlp, name)
        softmax = output.layers[0]
        for node, param in ((softmax, "W"), (softmax, "b"), (mix, "scalars"), (mix, "scale")):
            node.set_param(param, random.normal(size=node.get_param(param).shape).astype("f"))
    batch = pipelines.examples(nlp)
    expected = pipelines.autograd(nlp, batch, ("one", "two"))
    nlp.update(batch, sgd=False)
    actual = gradients(nlp)
    assert actual.keys() == expected.keys()
    for name in expected:
        assert_allclose(actual[name], expected[name], atol=2e-5, err_msg=name)


def test_learns(weights):
    """NER on three sentences, with everything trained."""
    nlp = listening(weights, "ner")
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    optimizer.learn_rate = 0.02
    for _ in range(40):
        pipelines.step(nlp, optimizer)
    scores = nlp.evaluate(pipelines.examples(nlp))
    assert scores["ents_f"] == 1.0


def test_averages_are_used_everywhere(weights):
    """Otherwise an evaluation would mix averaged parameters of the tagger with unaveraged ones of the biLM."""
    nlp = listening(weights)
    nlp.initialize(lambda: pipelines.examples(nlp))
    optimizer = Adam(0.05, use_averages=True)
    for _ in range(4):
        pipelines.step(nlp, optimizer)
    raw = pipelines.parameters(nlp)
    with nlp.use_params(optimizer.averages):
        assert len(pipelines.changed(raw, pipelines.parameters(nlp))) == len(raw)
        averaged = nlp("Anna met Bob.")._.elmo_layers
    assert not pipelines.changed(raw, pipelines.parameters(nlp))
    assert np.abs(nlp("Anna met Bob.")._.elmo_layers - averaged).max() > 1e-4


def test_plain_gradient_descent_moves_against_the_gradient(weights):
    """By values: p - lr g, with the parameter's own gradient."""
    nlp = listening(weights, "one")
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one")
    before = pipelines.parameters(nlp)
    nlp.update(pipelines.examples(nlp), sgd=False)
    actual = gradients(nlp)
    nlp.get_pipe("elmo").finish_update(SGD(0.1, L2=0.0, grad_clip=0.0))
    for name, after in pipelines.parameters(nlp).items():
        assert_allclose(after, before[name] - 0.1 * actual[name], atol=1e-6, err_msg=name)


def test_components_that_do_not_listen_are_named(weights):
    """The config is that of `spacy init config --pipeline elmo,ner`."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("ner")
    nlp.add_pipe("sentencizer")
    with pytest.warns(UserWarning) as caught:
        nlp.initialize(lambda: pipelines.examples(nlp))
    (message,) = [str(w.message) for w in caught if "listens" in str(w.message)]
    assert "'elmo', so ner will" in message
    assert "[components.ner.model.tok2vec] to spacy-elmo.ElmoListener.v1" in message
    assert "init-config --pipeline ner`" in message


def test_no_warning_where_the_listener_was_replaced(weights):
    nlp = listening(weights)
    nlp.initialize(lambda: pipelines.examples(nlp))
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    assert not nlp.get_pipe("elmo").listeners
    nlp.initialize(lambda: pipelines.examples(nlp))


def test_no_warning_where_nothing_could_listen(weights):
    nlp = pipelines.blank(weights)
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("ner", first=True)  # it runs before elmo
    nlp.initialize(lambda: pipelines.examples(nlp))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_default_type_of_torch_changes_nothing(weights, dtype):
    """A C function once wrote float32 numbers into memory of this type."""
    trained = []
    for default in (torch.float32, dtype):
        nlp = listening(weights)
        optimizer = pipelines.trained(nlp)
        torch.set_default_dtype(default)
        try:
            pipelines.step(nlp, optimizer)
        finally:
            torch.set_default_dtype(torch.float32)
        trained.append(pipelines.parameters(nlp))
    assert not pipelines.changed(*trained)
