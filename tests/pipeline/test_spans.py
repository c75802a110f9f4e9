"""The getters of `get_spans`, ours and others', as a user names them in a config."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.pipeline.spans import rule_spans
from tests import pipelines
from tests.pipelines import assert_close

WORDS = ["A", "cat", ".", "It", "sat", ".", "Twice"]
SENTENCES = [WORDS[0:3], WORDS[3:6], WORDS[6:]]


def doc_of(nlp, sents=False):
    starts = [place in (0, 3, 6) for place in range(len(WORDS))]
    return Doc(nlp.vocab, words=WORDS, sent_starts=starts if sents else None)


def layers_by(weights, get_spans, **doc):
    nlp = pipelines.blank(weights, get_spans=get_spans)
    return nlp(doc_of(nlp, **doc))._.elmo_layers


def test_rule_spans():
    doc = spacy.blank("en")("One. Two\n\nthree")
    spans = rule_spans([doc, doc[0:0].as_doc()])
    assert [[span.text for span in own] for own in spans] == [["One.", "Two\n\n", "three"], []]


def test_own_getters(weights):
    rule = layers_by(weights, None)
    assert_close(layers_by(weights, {"@misc": "spacy-elmo.sents.v1"}, sents=True), rule)
    whole = layers_by(weights, {"@misc": "spacy-elmo.doc.v1"})
    assert np.abs(whole - rule)[1:].max() > 1e-3


def test_sentences_that_nobody_set(weights):
    with pytest.raises(ValueError, match="E030"):
        layers_by(weights, {"@misc": "spacy-elmo.sents.v1"})


def test_getters_of_spacy_transformers(weights):
    pytest.importorskip("spacy_transformers")
    whole = layers_by(weights, {"@misc": "spacy-elmo.doc.v1"})
    getter = {"@span_getters": "spacy-transformers.doc_spans.v1"}
    assert_close(layers_by(weights, getter), whole)
    getter = {"@span_getters": "spacy-transformers.sent_spans.v1"}
    assert_close(layers_by(weights, getter, sents=True), layers_by(weights, None))
    # Windows of 4 tokens every 3: tokens 3 and 6 are in two of them.
    getter = {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 4, "stride": 3}
    strided = layers_by(weights, getter)
    assert_close(strided[:1], whole[:1])
    assert np.abs(strided - whole)[1:].max() > 1e-3
