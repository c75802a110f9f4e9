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
