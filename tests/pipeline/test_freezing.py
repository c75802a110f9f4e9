"""Freezing, sourcing and sharing by spaCy's own means."""

import warnings

import pytest
import spacy
from spacy.training.initialize import init_nlp
from thinc.api import Adam

from tests import pipelines
from tests.pipelines import listening


def initialized(config, **training):
    """Return a pipeline after the steps of `spacy train` before its loop."""
    spacy.util.registry.readers("spacy-elmo-tests.examples.v1", func=lambda: pipelines.examples)
    reader = {"@readers": "spacy-elmo-tests.examples.v1"}
    sections = {"corpora": {"train": reader, "dev": reader}, "training": training}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return init_nlp(spacy.Config(config).merge(sections))


def test_fresh_in_frozen_components(weights):
    """spaCy does not initialize frozen components, so a new one would have random weights."""
    nlp = initialized(listening(weights, "tagger").config, frozen_components=["elmo"])
    expected = pipelines.blank(weights)("Anna met Bob.")._.elmo_layers
    pipelines.awaken(nlp, "tagger")
    with pytest.warns(UserWarning, match="annotating_components"):
        pipelines.step(nlp, Adam(0.01), exclude=["elmo"])
    pipelines.assert_same(nlp("Anna met Bob.")._.elmo_layers, expected)
    (mix,) = pipelines.mixes(nlp.get_pipe("tagger").model)
    assert mix.get_param("scalars").any()


@pytest.mark.parametrize("annotating", [True, False])
def test_sourced_and_frozen(weights, tmp_path, annotating):
    """A sourced upstream is linked though it is frozen. It keeps its trained weights, and also works if it is not in
    annotating_components, with a warning."""
    source = listening(weights)
    pipelines.trained(source, 3)
    source.to_disk(tmp_path)
    config = listening(weights).config
    config["components"]["elmo"] = {"source": str(tmp_path)}
    names = ["elmo"] if annotating else []
    nlp = initialized(config, frozen_components=["elmo"], annotating_components=names)
    before = pipelines.parameters(nlp)
    assert not pipelines.changed(before, pipelines.parameters(source))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            pipelines.step(nlp, Adam(0.01), exclude=["elmo"], annotates=names)
    assert bool(caught) != annotating
    assert not pipelines.changed(before, pipelines.parameters(nlp))
    assert pipelines.mixes(nlp.get_pipe("tagger").model)[0].get_param("scalars").any()


def test_sourced_and_trained_on(weights, tmp_path):
    """spaCy does not initialize what is sourced, so training goes on where it ended."""
    source = listening(weights)
    pipelines.trained(source, 3)
    source.to_disk(tmp_path)
    config = listening(weights).config
    config["components"]["elmo"] = {"source": str(tmp_path)}
    nlp = initialized(config)
    before = pipelines.parameters(nlp)
    assert not pipelines.changed(before, pipelines.parameters(source))
    pipelines.awaken(nlp, "tagger")
    pipelines.step(nlp, Adam(0.01))
    assert pipelines.changed(before, pipelines.parameters(nlp)) == set(before)


def test_sourced_from_another_pipeline(weights):
    """The component is shared, and follows whichever pipeline was linked last."""
    source = listening(weights, "one")
    pipelines.trained(source, 2)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", source=source)
    pipelines.add_tagger(nlp, "two")
    assert nlp.get_pipe("elmo").listening_components == ["two"]
    expected = pipelines.layers(source, pipelines.TEXTS)
    actual = pipelines.layers(nlp, pipelines.TEXTS, disable=["two"])
    for one, other in zip(actual, expected, strict=True):
        pipelines.assert_same(one, other)


# Unfreezing


def moved(nlp, optimizer, **update):
    """The names of the parameters that a step changes. A gradient that an earlier step left behind would change them,
    too."""
    before = pipelines.parameters(nlp)
    pipelines.step(nlp, optimizer, **update)
    return pipelines.changed(before, pipelines.parameters(nlp))


def test_unfreeze_at(weights, monkeypatch):
    """Before that step the biLM costs as much as a frozen one: no graph, no gradient, and nothing is computed twice."""
    nlp = listening(weights, trainable="top", unfreeze_at=2)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    elmo = nlp.get_pipe("elmo")
    for _ in range(2):
        assert elmo.frozen
        assert moved(nlp, optimizer) == set()
        assert not pipelines.gradients(nlp)
        # The first step has read all that there is.
        monkeypatch.setattr(
            elmo.model, "_func", lambda model, docs, is_train: ([1 / 0 for _ in docs], None)
        )
    monkeypatch.undo()
    assert not elmo.frozen
    top = {name for name in pipelines.parameters(nlp) if name.startswith("lstm.1.")}
    assert moved(nlp, optimizer) == top


def test_unfreeze_at_counts_steps_of_the_optimizer(weights):
    """It does not count batches, of which `accumulate_gradient` joins several to one step."""
    nlp = listening(weights, unfreeze_at=1)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    nlp.update(pipelines.examples(nlp), sgd=False)
    assert moved(nlp, optimizer) == set()
    nlp.update(pipelines.examples(nlp), sgd=False)
    assert moved(nlp, optimizer)


@pytest.mark.parametrize("again", ["initialize", "load", "from_disk"])
def test_unfreeze_at_counts_anew_in_every_run(weights, tmp_path, again):
    nlp = listening(weights, unfreeze_at=1)
    optimizer = pipelines.trained(nlp, 3)
    if again == "initialize":
        optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    else:
        nlp.to_disk(tmp_path)
        nlp = spacy.load(tmp_path) if again == "load" else nlp.from_disk(tmp_path)
    pipelines.awaken(nlp, "tagger")
    assert moved(nlp, optimizer) == set()
    assert moved(nlp, optimizer)


def test_unfreeze_at_inside_a_consumer(weights, tmp_path):
    """`replace_listeners` keeps the option, and then the steps of the consumer are counted."""
    nlp = listening(weights, unfreeze_at=1)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    assert nlp.config["components"]["tagger"]["model"]["tok2vec"]["unfreeze_at"] == 1
    for one in (nlp, spacy.load(tmp_path)):
        pipelines.awaken(one, "tagger")
        (shim,) = (shim for node in one.get_pipe("tagger").model.walk() for shim in node.shims)
        values = [shim.bilm.lstm[0].bias.detach().clone()]
        for _ in range(2):
            pipelines.step(one, optimizer)
            values.append(shim.bilm.lstm[0].bias.detach().clone())
        assert values[0].equal(values[1]) and not values[1].equal(values[2])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"frozen": True, "unfreeze_at": 5}, "frozen = true and unfreeze_at = 5"),
        ({"frozen": False, "unfreeze_at": -1}, "unfreeze_at = -1"),
    ],
)
def test_impossible_unfreezing(weights, options, message):
    with pytest.raises(ValueError, match=message):
        pipelines.blank(weights, **options)
