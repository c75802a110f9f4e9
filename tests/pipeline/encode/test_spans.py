"""The getters of `get_spans`, those of spacy-elmo and others, named in a config as users name them."""

import copy
import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_elmo.pipeline.encode.spans import (
    Sequences,
    rule_spans,
    spans_of,
    window_spans,
    windows_v1,
    wrapped_spans,
    wrapped_v1,
)
from tests import pipelines
from tests.pipelines import assert_same

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


def test_wrapped_lines(weights):
    """Lines that end at a width, with and without indentation: words have the vectors that they have in one line."""
    text = "He left\nNew York in a\n  hurry.\nIt rained (all\r\nday). He was wet\n\nThe end"
    nlp = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.wrapped.v1"})
    doc = nlp(text)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    plain = pipelines.blank(weights)
    layers = [plain(paragraph)._.elmo_layers for paragraph in paragraphs]
    words = [token.i for token in doc if not token.is_space]
    assert_same(doc._.elmo_layers[:, words], np.concatenate(layers, axis=1))
    spans = wrapped_v1()([doc])[0]
    assert [" ".join(span.text.split()) for span in spans] == [
        "He left New York in a hurry.", "It rained (all day).", "He was wet", "The end",
    ]  # fmt: skip


@pytest.mark.parametrize("by_rule", [rule_spans, wrapped_spans])
def test_sentences_by_rule_without_spans(nlp, by_rule):
    """The sequences are those of a getter that returns the same Spans."""
    texts = ["He left\nNew York. It (all\r\nday) rained.\n\n Twice", "", " \n", "One"]
    docs = [nlp.make_doc(text) for text in texts]
    fast, slow = (Sequences.of(docs, getter) for getter in (by_rule, lambda docs: by_rule(docs)))
    assert fast.types == slow.types and (fast.overlap, slow.overlap) == (False, False)
    for name in ("lengths", "type_of_word", "tokens"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()
    assert len(fast.lengths) == {rule_spans: 6, wrapped_spans: 4}[by_rule]


def test_own_getters(weights):
    rule = layers_by(weights, None)
    assert_same(layers_by(weights, {"@misc": "spacy-elmo.sents.v1"}, sents=True), rule)
    whole = layers_by(weights, {"@misc": "spacy-elmo.doc.v1"})
    assert np.abs(whole - rule)[1:].max() > 1e-3


def test_windows():
    """Every token is in a window, and no window is superfluous: only the last one reaches the end of the Doc."""
    vocab = spacy.blank("en").vocab
    for size in range(1, 6):
        for stride in range(1, size + 1):
            for length in range(12):
                doc = Doc(vocab, words=["a"] * length)
                (own,) = window_spans([doc], size=size, stride=stride)
                starts = [span.start for span in own]
                assert starts == [stride * place for place in range(len(own))]
                assert [span.end for span in own] == [min(s + size, length) for s in starts]
                assert own[-1].end == length
                assert all(span.end < length for span in own[:-1])


def test_windows_of_a_config(weights):
    nlp = pipelines.blank(
        weights, get_spans={"@misc": "spacy-elmo.windows.v1", "size": 4, "stride": 3}
    )
    layers = nlp(doc_of(nlp))._.elmo_layers
    # As if they were two Docs; token 3 is in both.
    elmo = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.doc.v1"}).get_pipe("elmo")
    windows = [Doc(nlp.vocab, words=words) for words in (WORDS[0:4], WORDS[3:7])]
    first, second = elmo.predict(windows)
    expected = np.concatenate([first, second[:, 1:]], axis=1)
    expected[:, 3] = (first[:, 3] + second[:, 0]) / 2
    assert_same(layers, expected)
    getter = nlp.get_pipe("elmo").model.attrs["options"].get_spans
    for copied in (copy.deepcopy(getter), pickle.loads(pickle.dumps(getter))):
        (spans,) = copied([doc_of(nlp)])
        assert [(span.start, span.end) for span in spans] == [(0, 4), (3, 7)]


@pytest.mark.parametrize("size, stride", [(0, 0), (4, 0), (4, 5), (-2, -3)])
def test_impossible_windows(size, stride):
    with pytest.raises(ValueError, match=f"size = {size} with stride = {stride}"):
        windows_v1(size, stride)


def test_sentences_that_nobody_set(weights):
    with pytest.raises(ValueError, match="training.annotating_components"):
        layers_by(weights, {"@misc": "spacy-elmo.sents.v1"})


@pytest.mark.parametrize("get_spans", [
    lambda docs: [[other[:]] for other in docs[::-1]],
    lambda docs: [[docs[0][:]] for _ in docs],
])  # fmt: skip
def test_spans_of_another_doc(nlp, get_spans):
    """The vectors of the Docs would be mixed up, or the tokens of another Doc be missing."""
    docs = [nlp.make_doc(text) for text in ("a b c", "d")]
    with pytest.raises(ValueError, match="get_spans returned a span of another Doc for the Doc"):
        spans_of(docs, get_spans)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("inline", [True, False])
def test_sentences_that_are_set_in_training(weights, frozen, inline):
    """`nlp.initialize` runs no component before the tagger's, so its Docs have no sentences yet."""
    spans = {"@misc": "spacy-elmo.sents.v1"}
    nlp = pipelines.blank(weights, get_spans=spans, frozen=frozen)
    nlp.add_pipe("sentencizer", first=True)
    pipelines.add_tagger(nlp)
    if inline:
        nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
        nlp.remove_pipe("elmo")
    batch = pipelines.examples(nlp)
    nlp.initialize(lambda: batch)
    with pytest.raises(ValueError, match="training.annotating_components"):
        pipelines.step(nlp, Adam(0.01), batch)
    losses = pipelines.step(nlp, Adam(0.01), batch, annotates=["sentencizer"])
    assert losses["tagger"] > 0


def test_getters_of_spacy_transformers(weights):
    pytest.importorskip("spacy_transformers")
    whole = layers_by(weights, {"@misc": "spacy-elmo.doc.v1"})
    getter = {"@span_getters": "spacy-transformers.doc_spans.v1"}
    assert_same(layers_by(weights, getter), whole)
    getter = {"@span_getters": "spacy-transformers.sent_spans.v1"}
    assert_same(layers_by(weights, getter, sents=True), layers_by(weights, None))
    # Windows of 4 tokens every 3: tokens 3 and 6 are in two of them.
    getter = {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 4, "stride": 3}
    strided = layers_by(weights, getter)
    assert_same(strided[:1], whole[:1])
    assert np.abs(strided - whole)[1:].max() > 1e-3
