"""Listeners only add gradients, and the component runs the backward pass, so that no gradient is lost."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

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


def test_last_listener_is_disabled(weights):
    """The same with `select_pipes`, which does not link the listeners again."""
    expected = one_step(weights, "one")
    for name in ("one", "two"):
        found = one_step(weights, "one", "two", prepare=lambda nlp, n=name: nlp.disable_pipe(n))
        assert_same(found, expected)


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


def test_all_listeners_count_in_any_order(weights):
    alone = one_step(weights, "one")
    both = one_step(weights, "one", "two")
    for name in alone:
        assert_allclose(both[name], 2 * alone[name], atol=1e-6)


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


def test_a_batch_of_the_same_words_is_another_batch(weights):
    """spaCy identifies a batch by the sum of its hashes. If a component was frozen in between, it takes the outputs of
    an earlier batch for those of a later one, or raises E953 if the sums differ."""
    nlp = listening(weights, "one")
    optimizer = pipelines.trained(nlp, 2)
    batch = pipelines.examples(nlp)
    nlp.update(batch, sgd=False)
    (listener,) = nlp.get_pipe("elmo").listeners
    nlp.get_pipe("elmo").finish_update(optimizer)
    pipelines.change(nlp, 1)
    docs = [Doc(nlp.vocab, words=words) for words, _ in pipelines.SENTENCES]
    with pytest.warns(UserWarning, match="did not run"):
        vectors, _ = listener.begin_update(docs)
    for doc, found in zip(docs, vectors, strict=True):
        (expected,) = listener.predict(
            [nlp.get_pipe("elmo")(Doc(nlp.vocab, words=[t.text for t in doc]))]
        )
        assert_allclose(found, expected, atol=1e-6)


def test_frozen_in_the_middle(weights):
    """spaCy's own listeners raise E953 here."""
    nlp = listening(weights, "one")
    optimizer = pipelines.trained(nlp, 1)
    nlp.update(pipelines.examples(nlp), sgd=False)
    before = pipelines.parameters(nlp)
    with pytest.warns(UserWarning, match="annotating_components"):
        pipelines.step(nlp, optimizer, exclude=["elmo"])
    assert not pipelines.changed(before, pipelines.parameters(nlp))
    pipelines.step(nlp, optimizer, exclude=["elmo"], annotates=["elmo"])


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


def test_prediction_does_not_disturb_a_step(weights):
    """spaCy issue 11385: an annotating upstream that predicts between the forward and the backward pass must not
    replace the outputs of the listeners."""
    expected = one_step(weights, "one")
    assert_same(one_step(weights, "one", annotates=["elmo"]), expected)


def test_prediction_between_the_updates_loses_nothing(weights):
    """A callback may predict, for example for logging, between the update of elmo and that of the consumer."""
    nlp = listening(weights, "one")
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "one")
    batch = pipelines.examples(nlp)
    nlp.get_pipe("elmo").update(batch)
    nlp("Something else.")
    nlp.get_pipe("one").update(batch)
    assert_same(gradients(nlp), one_step(weights, "one"))


@pytest.mark.parametrize("disabled", [[], ["elmo"]])
def test_sample_of_initialize_ends(weights, disabled):
    """The sample has a shape, but no values. spaCy disables frozen components while it initializes the others."""
    nlp = listening(weights, "one")
    batch = pipelines.examples(nlp)
    with nlp.select_pipes(disable=disabled):
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


def test_rehearse(weights):
    """`rehearse` copies the consumer's model; spaCy's own listener has nothing to read in the copy (E203)."""
    nlp = listening(weights, "ner", frozen=True)
    pipelines.trained(nlp, 2)
    optimizer = nlp.resume_training()
    raw = [Example.from_dict(Doc(nlp.vocab, words=words), {}) for words, _ in pipelines.SENTENCES]
    with pytest.warns(UserWarning, match="did not run") as caught:
        losses = nlp.rehearse(raw, sgd=optimizer)
    assert len(caught) == 1 and np.isfinite(losses["ner"])
    pipelines.step(nlp, optimizer)
    assert nlp.rehearse(raw, sgd=optimizer)["ner"] >= 0


def test_no_listener_costs_nothing(weights, monkeypatch):
    nlp = pipelines.blank(weights)
    optimizer = nlp.initialize()
    elmo = nlp.get_pipe("elmo")
    monkeypatch.setattr(type(elmo), "predict", lambda *args: 1 / 0)
    pipelines.step(nlp, optimizer)
