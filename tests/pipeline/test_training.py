"""Training: gradients of listeners, which only add them, and the backward pass of the component. The state machine of
`test_state_machine.py` holds excluded and disabled components, and predictions within a step."""

import numpy as np
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import SGD, Adam

from tests import pipelines
from tests.pipelines import gradients, listening


def one_step(weights, *consumers, prepare=lambda nlp: None, **update):
    """The gradients of the biLM after one batch."""
    nlp = listening(weights, *consumers)
    spacy.util.fix_random_seed(0)
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, *consumers)
    prepare(nlp)
    nlp.update(pipelines.examples(nlp), sgd=False, **update)
    return gradients(nlp)


def assert_same(found, expected):
    assert found.keys() == expected.keys() and expected
    for name in expected:
        assert_allclose(found[name], expected[name], atol=1e-6, err_msg=name)


def test_last_listener_is_excluded(weights):
    """In spaCy the last listener runs the backward pass; if it is excluded from updates, nothing does."""
    expected = one_step(weights, "one")
    assert_same(one_step(weights, "one", "two", exclude=["two"]), expected)
    assert_same(one_step(weights, "one", "two", exclude=["one"]), expected)


def test_last_listener_has_no_gold(weights):
    """NER returns before its forward pass if a batch has no entities."""
    nlp = listening(weights, "tagger", "ner")
    nlp.initialize(lambda: pipelines.examples(nlp))
    before = pipelines.parameters(nlp)
    words, _ = pipelines.SENTENCES[0]
    tags = [str(len(word)) for word in words]
    batch = [Example.from_dict(Doc(nlp.vocab, words=words), {"tags": tags})]
    pipelines.awaken(nlp, "tagger")
    assert pipelines.step(nlp, Adam(0.01), batch)["elmo"] > 0
    assert pipelines.changed(before, pipelines.parameters(nlp))


def test_accumulated_gradients_are_summed(weights):
    """`accumulate_gradient` means several updates before one `finish_update`."""
    nlp = listening(weights, "one")
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one")
    batch = pipelines.examples(nlp)
    for part in (batch[:1], batch[1:]):
        nlp.update(part, sgd=False)
    expected = one_step(weights, "one")
    assert_same(gradients(nlp), expected)


def test_one_batch_late_in_hand_written_loops(weights):
    """`nlp.update(sgd=...)` calls `finish_update` before the listeners have run, so their gradient is applied with the
    next batch, as documented."""
    nlp = listening(weights, "one")
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one")
    before = pipelines.parameters(nlp)
    nlp.update(pipelines.examples(nlp), sgd=optimizer)
    assert not pipelines.changed(before, pipelines.parameters(nlp))
    nlp.update(pipelines.examples(nlp), sgd=optimizer)
    assert pipelines.changed(before, pipelines.parameters(nlp))


def test_weights_changed_by_hand_between_two_steps(weights):
    """The gradient of the first batch cannot be computed any more, and that is said; the second one trains."""
    nlp = listening(weights, "one")
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one")
    lost, used = {}, {}
    nlp.update(pipelines.examples(nlp), sgd=optimizer, losses=lost)
    pipelines.change(nlp, 1)
    before = pipelines.parameters(nlp)
    with pytest.warns(UserWarning, match="'elmo'.* gradient is lost"):
        nlp.update(pipelines.examples(nlp), sgd=optimizer, losses=used)
    assert not pipelines.changed(before, pipelines.parameters(nlp))
    nlp.update(pipelines.examples(nlp), sgd=optimizer)
    assert pipelines.changed(before, pipelines.parameters(nlp))
    assert lost["elmo"] == 0 and used["elmo"] > 0


def test_weights_changed_by_hand_between_two_listeners(weights):
    """The second one gets the layers of the present weights, which only its gradient reaches."""
    nlp = listening(weights, "one", "two")
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one", "two")
    batch = pipelines.examples(nlp)
    nlp.get_pipe("elmo").update(batch)
    nlp.get_pipe("one").update(batch, sgd=False)
    pipelines.change(nlp, 1)
    with pytest.warns(UserWarning, match="'elmo'.* gradient is lost"):
        nlp.get_pipe("two").update(batch, sgd=False)
    expected = one_step(weights, "one", prepare=lambda nlp: pipelines.change(nlp, 1))
    assert_same(gradients(nlp), expected)


def test_a_new_run_needs_no_gradient_of_the_old_one(weights):
    """`initialize` ends the last batch of a loop with `sgd=optimizer`, and nothing warns."""
    nlp = listening(weights, "one")
    for _ in range(2):
        optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
        pipelines.awaken(nlp, "one")
        before = pipelines.parameters(nlp)
        assert nlp.update(pipelines.examples(nlp), sgd=optimizer)["elmo"] == 0
        assert not pipelines.changed(before, pipelines.parameters(nlp))


def test_two_listeners_in_one_component(weights):
    """In spaCy the order of their backward passes decides what reaches the upstream."""
    nlp = pipelines.blank(weights, frozen=False)
    both = {"a": pipelines.listener(), "b": pipelines.listener(layers="top")}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": {"@layers": "concatenate.v1", "*": both}}})
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    before = pipelines.parameters(nlp)
    for _ in range(2):
        pipelines.step(nlp, optimizer)
    assert len(nlp.get_pipe("elmo").listeners) == 2
    assert len(pipelines.changed(before, pipelines.parameters(nlp))) == len(before)


def test_docs_of_the_batch_in_another_order(weights):
    """A consumer may leave out Docs, as the parser does with empty ones, or take them in another order."""
    nlp = listening(weights, "one")
    nlp.initialize(lambda: pipelines.examples(nlp))
    elmo = nlp.get_pipe("elmo")
    (listener,) = elmo.listeners
    batch = [*pipelines.examples(nlp), Example.from_dict(Doc(nlp.vocab), {})]
    elmo.update(batch)
    docs = [batch[2].predicted, batch[0].predicted]
    vectors, backprop = listener.begin_update(docs)
    assert [len(vector) for vector in vectors] == [len(doc) for doc in docs]
    backprop([np.ones_like(vector) for vector in vectors])
    found = gradients(nlp)
    pipelines.bilm(nlp).zero_grad()
    elmo.update(batch)
    vectors, backprop = listener.begin_update([batch[0].predicted, batch[2].predicted])
    backprop([np.ones_like(vector) for vector in vectors])
    assert_same(found, gradients(nlp))


def test_sample_of_initialize_ends(weights):
    """The sample has a shape, but no values. spaCy disables frozen components while it initializes the others."""
    nlp = listening(weights, "one")
    batch = pipelines.examples(nlp)
    with nlp.select_pipes(disable="elmo"):
        nlp.initialize(lambda: batch)
    docs = [example.predicted for example in batch]
    (listener,) = nlp.get_pipe("elmo").listeners
    with pytest.warns(UserWarning, match="did not run"):
        vectors, _ = listener.begin_update(docs)
    for doc, found in zip(docs, vectors, strict=True):
        expected = nlp.get_pipe("elmo")(Doc(nlp.vocab, words=[token.text for token in doc]))
        assert_allclose(found, expected._.elmo, atol=1e-6)


def test_batches_without_tokens(weights):
    """After an update without tokens, the listeners still have an output to read."""
    nlp = listening(weights, "one", "ner")
    optimizer = pipelines.trained(nlp)
    for words in ([], [" "]):
        batch = [Example.from_dict(Doc(nlp.vocab, words=words), {"tags": ["1"] * len(words)})]
        pipelines.step(nlp, optimizer, batch * 2)
    nlp.get_pipe("elmo").update([])
    assert list(nlp.pipe([])) == []


def test_no_listener_costs_nothing(weights, monkeypatch):
    nlp = pipelines.blank(weights)
    optimizer = nlp.initialize()
    elmo = nlp.get_pipe("elmo")
    monkeypatch.setattr(type(elmo), "predict", lambda *args: 1 / 0)
    pipelines.step(nlp, optimizer)


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


def test_gradient_of_the_whole_chain(weights):
    """Two taggers with a mix each, against one graph of torch over all of it."""
    nlp = listening(weights, "one", "two")
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


def test_listeners_that_do_not_learn_while_the_bilm_does_are_named(weights):
    """Their input changes with each step. So spaCy's `frozen_components` damage them, unless elmo is frozen, too."""
    nlp = listening(weights, "one", "two", "three")
    optimizer = pipelines.trained(nlp, 11)
    with pytest.warns(UserWarning, match="'elmo' is trained, but 'one', 'three' not"):
        for _ in range(10):
            pipelines.step(nlp, optimizer, exclude=["one", "three"])
    for _ in range(20):  # once is enough
        pipelines.step(nlp, optimizer, exclude=["one", "three"])
    frozen = listening(weights, "one", "two", frozen=True)
    pipelines.trained(frozen, 11, exclude=["one"])


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
