"""Sentences for the probes have the layers of the network, in order."""

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.lab.probe import layers
from spacy_elmo.lab.probe.layers import LayerReader
from tests import pipelines, tiny

SENTENCES = [["a", "cat", "sat"], ["naïve"], ["cat", "and", "cat", "."], ["鳥", "sat"]]


@pytest.fixture
def nlp(tmp_path):
    tiny.save(tmp_path / "w.safetensors", {"language": "en"})
    return pipelines.blank(tmp_path / "w.safetensors")


def test_layers_are_those_of_the_component(nlp, monkeypatch):
    monkeypatch.setattr(layers, "_SENTENCES", 3)
    reader = LayerReader(nlp)
    assert (reader.layers, reader.width) == (3, 10)
    actual = list(reader(iter(SENTENCES)))
    assert len(actual) == len(SENTENCES)
    for words, got in zip(SENTENCES, actual, strict=True):
        pipelines.assert_close(got, nlp(Doc(nlp.vocab, words=words))._.elmo_layers)


def test_what_stands_before_elmo_runs_and_what_stands_after_does_not(nlp):
    seen = []

    @Language.component("probe_before")
    def before(doc):
        seen.append([token.text for token in doc])
        return doc

    @Language.component("probe_after")
    def after(doc):
        raise AssertionError("not to be run")

    nlp.add_pipe("probe_before", first=True)
    nlp.add_pipe("probe_after")
    list(LayerReader(nlp)(SENTENCES))
    assert seen == SENTENCES


def test_layers_are_all_there_when_docs_keep_the_average_alone(nlp, tmp_path):
    average = pipelines.blank(tmp_path / "w.safetensors", store="average")
    (got,) = LayerReader(average)([SENTENCES[0]])
    (expected,) = LayerReader(nlp)([SENTENCES[0]])
    assert np.array_equal(got, expected)
