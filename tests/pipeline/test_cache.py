"""The layers that frozen training keeps between epochs."""

import copy
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pipeline.cache import LayerCache
from spacy_elmo.pipeline.spans import rule_spans, whole_docs
from tests import pipelines, tiny

VOCAB = spacy.blank("en").vocab


@pytest.fixture
def bilm() -> BiLM:
    return tiny.bilm(tiny.config())


def layers(number: int) -> np.ndarray:
    return np.full((2, 5, 25), number, dtype=np.float32)  # 1000 bytes


def test_least_recently_used_goes_first(bilm):
    cache = LayerCache(0.003)
    for number in range(3):
        assert cache.get(bytes([number]), bilm) is None
        cache.put(bytes([number]), layers(number))
    assert (cache.get(b"\0", bilm) == 0).all()
    cache.put(b"new", layers(9))
    assert [cache.get(key, bilm) is not None for key in (b"\0", b"\1", b"\2", b"new")] == [
        1,
        0,
        1,
        1,
    ]


def test_what_does_not_fit_is_not_kept(bilm):
    for size in (0, 0.0009):
        cache = LayerCache(size)
        cache.put(b"a", layers(1))
        assert cache.get(b"a", bilm) is None


def test_layers_of_another_network_are_forgotten(bilm):
    cache = LayerCache(1)
    cache.get(b"a", bilm)
    cache.put(b"a", layers(1))
    assert cache.get(b"a", bilm) is not None
    assert cache.get(b"a", tiny.bilm(tiny.config())) is None
    assert cache.get(b"a", bilm) is None


def test_keys_tell_words_and_spans_apart():
    cache = LayerCache(1)
    docs = [
        Doc(VOCAB, words=words) for words in (["a", "b"], ["a", "b"], ["ab"], ["a", "b", "."], [])
    ]
    for get_spans in (rule_spans, whole_docs):
        same, again, *others = cache.keys(docs, get_spans)
        assert same == again and len({same, *others}) == 4
    halves = lambda docs: [[doc[:1], doc[1:]] for doc in docs]  # noqa: E731
    assert cache.keys(docs[:1], halves) != cache.keys(docs[:1], whole_docs)
    with pytest.raises(ValueError, match="spans for 0 of 5 Docs"):
        cache.keys(docs, lambda docs: [])


@pytest.mark.parametrize("cache_mb", [0, 1])
def test_spans_are_asked_for_once_without_a_cache(weights, cache_mb):
    nlp = pipelines.blank(weights, cache_mb=cache_mb)
    elmo, doc = nlp.get_pipe("elmo"), nlp.make_doc("A cat.")
    get_spans = elmo.model.attrs["options"].get_spans = Mock(wraps=whole_docs)
    elmo.new_batch([doc], train=True).layers_of(doc)
    assert get_spans.call_count == 1 + cache_mb


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))]
)
def test_copies_are_empty(bilm, duplicate):
    cache = LayerCache(1)
    cache.get(b"a", bilm)
    cache.put(b"a", layers(1))
    assert duplicate(cache).megabytes == 1
    assert duplicate(cache).get(b"a", bilm) is None


def test_a_later_epoch_reads_nothing_and_trains_the_same(weights, monkeypatch):
    """Docs come as new copies in each epoch, as the readers of `spacy train` give them."""
    trained = {}
    for cache_mb in (0, 1):
        nlp = pipelines.blank(weights, cache_mb=cache_mb)
        pipelines.add_tagger(nlp)
        optimizer = nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        read = Mock(wraps=nlp.get_pipe("elmo").predict)
        monkeypatch.setattr(nlp.get_pipe("elmo"), "predict", read)
        for _ in range(3):
            pipelines.step(nlp, optimizer)
        trained[cache_mb] = nlp.get_pipe("tagger").model.to_bytes()
        # With the cache, `initialize` has read the three sentences, and no step does.
        assert sum(len(call.args[0]) for call in read.call_args_list) == (0 if cache_mb else 9)
    assert trained[0] == trained[1]


def test_layers_on_demand_come_from_the_cache(weights, monkeypatch):
    """With elmo among the frozen_components. What a Doc gets is its own: changing it must not reach the next epoch."""
    nlp = pipelines.blank(weights)
    elmo = nlp.get_pipe("elmo")
    with pytest.warns(UserWarning, match="did not run"):
        (expected,) = elmo.supply([nlp.make_doc("A cat.")])
    expected = expected.copy()
    monkeypatch.setattr(elmo, "predict", lambda docs: [1 / 0 for _ in docs])
    for _ in range(2):
        doc = nlp.make_doc("A cat.")
        elmo.supply([doc])
        np.testing.assert_array_equal(doc._.elmo_layers, expected)
        doc._.elmo_layers[:] = 0
