"""The cache of layers between epochs: in memory, on disk, and its use in training and prediction."""

import copy
import pickle
import threading
import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from spacy.tokens import Doc

from spacy_elmo.pipeline.encode.encoder import configure, shim_of
from spacy_elmo.pipeline.encode.shim import BiLMShim
from spacy_elmo.pipeline.encode.spans import rule_spans, whole_docs
from spacy_elmo.pipeline.factory_options import BiLMOptions
from spacy_elmo.pipeline.store.cache import LayerCache, keys_of
from tests import pipelines

WORDS = [["a", "cat", "sat", "on", number] for number in "0123"]
# Layers of (3, 5, 10) float32, and what an entry costs beside them.
ENTRY_MB = (3 * 5 * 10 * 4 + 200) / 1e6


@pytest.fixture
def read(nlp, monkeypatch):
    """A model, and a list that records how many Docs it computes at a time."""
    model = nlp.get_pipe("elmo").model
    return model, counted(model, monkeypatch)


def counted(model, monkeypatch):
    computed, original = [], model._func

    def count(model, docs, is_train):
        computed.append(len(docs))
        return original(model, docs, is_train)

    monkeypatch.setattr(model, "_func", count)
    return computed


def docs(nlp, texts=WORDS):
    return [Doc(nlp.vocab, words=words) for words in texts]


def test_least_recently_used_goes_first(nlp, read):
    model, computed = read
    cache, (a, b, c, d) = LayerCache(3 * ENTRY_MB), docs(nlp)
    for doc in (a, b, c, a, d):
        cache.get_or_compute(model, [doc], keep=True)
    assert computed == [1, 1, 1, 0, 1]
    for doc in (a, c, d, b):
        cache.get_or_compute(model, [doc], keep=False)
    assert computed[5:] == [0, 0, 0, 1]


@pytest.mark.parametrize("entries", [0, 0.99])
def test_what_does_not_fit_is_not_kept(nlp, read, entries):
    model, computed = read
    cache = LayerCache(entries * ENTRY_MB)
    for _ in range(2):
        cache.get_or_compute(model, docs(nlp)[:1], keep=True)
    assert computed == [1, 1]


def test_layers_of_other_weights_are_forgotten(nlp, read):
    model, computed = read
    cache, shim = LayerCache(1), shim_of(model)
    average = {(shim.id, "lstm.0.bias"): np.zeros_like(shim.bilm.lstm[0].bias.detach())}
    cache.get_or_compute(model, docs(nlp), keep=True)
    with shim.use_params(average):
        cache.get_or_compute(model, docs(nlp), keep=False)
    cache.get_or_compute(model, docs(nlp), keep=True)
    shim.initialize()
    cache.get_or_compute(model, docs(nlp), keep=True)
    shim.configure(BiLMOptions(frozen=False, trainable="top"))
    shim.bilm.lstm[1].bias.grad = shim.bilm.lstm[1].bias.detach() * 0 + 1
    model.finish_update(lambda key, data, gradient: (data + gradient, gradient))
    cache.get_or_compute(model, docs(nlp), keep=True)
    cache.get_or_compute(model, docs(nlp), keep=True)
    assert computed == [4, 4, 4, 4, 4, 0]


@pytest.mark.parametrize("reads", [False, True])
def test_weights_that_change_while_layers_are_computed(nlp, monkeypatch, reads):
    """Another thread trains the weights, and may read the cache, before the layers of the old weights are stored."""
    model, cache, (doc, other) = (
        nlp.get_pipe("elmo").model,
        LayerCache(1),
        docs(nlp)[:2],
    )
    original = model._func

    def compute_slowly(model, some, is_train):
        monkeypatch.setattr(model, "_func", original)
        computed = original(model, some, is_train)
        with torch.no_grad():
            shim_of(model).bilm.lstm[1].bias += 1
        if reads:
            cache.get_or_compute(model, [other], keep=True)
        return computed

    monkeypatch.setattr(model, "_func", compute_slowly)
    (old,) = cache.get_or_compute(model, [doc], keep=True)
    (new,) = model.predict([doc])
    assert np.abs(new - old).max() > 0.01
    assert_array_equal(*cache.get_or_compute(model, [doc], keep=True), new)


def test_weights_that_change_while_their_version_is_read(nlp, read, monkeypatch):
    """What another thread stores for the new weights meanwhile stays."""
    model, computed = read
    cache, (doc, other) = LayerCache(1), docs(nlp)[:2]
    version = BiLMShim.version

    def train():
        with torch.no_grad():
            shim_of(model).bilm.lstm[1].bias += 1
        cache.get_or_compute(model, [doc], keep=True)

    thread = threading.Thread(target=train)

    def read_slowly(shim):
        found = version.__get__(shim)
        monkeypatch.setattr(BiLMShim, "version", version)
        thread.start()
        thread.join(timeout=1)  # it cannot end if it waits for this one
        return found

    monkeypatch.setattr(BiLMShim, "version", property(read_slowly))
    cache.get_or_compute(model, [other], keep=True)
    thread.join()
    before = len(computed)
    cache.get_or_compute(model, [doc], keep=True)
    assert computed[before:] == [0]


def test_keys_tell_words_and_spans_apart(nlp):
    some = docs(nlp, (["a", "b"], ["a", "b"], ["ab"], ["a", "b", "."], []))
    for get_spans in (rule_spans, whole_docs):
        same, again, *others = keys_of(some, get_spans)
        assert same == again and len({same, *others}) == 4
    halves = lambda docs: [[doc[:1], doc[1:]] for doc in docs]  # noqa: E731
    assert keys_of(some[:1], halves) != keys_of(some[:1], whole_docs)
    with pytest.raises(ValueError, match="spans for 0 of 5 Docs"):
        keys_of(some, lambda docs: [])


@pytest.mark.parametrize("cache_mb", [0, 1])
def test_spans_are_asked_for_once_without_a_cache(weights, cache_mb):
    nlp = pipelines.blank(weights, cache_mb=cache_mb)
    elmo, doc = nlp.get_pipe("elmo"), nlp.make_doc("A cat.")
    get_spans = Mock(wraps=whole_docs)
    configure(elmo.model, replace(elmo.model.attrs["options"], get_spans=get_spans))
    pipelines.training_layers(nlp, [doc])
    assert get_spans.call_count == 1 + cache_mb


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))]
)
def test_copies_are_empty(nlp, duplicate, monkeypatch):
    cache, model = LayerCache(1), nlp.get_pipe("elmo").model
    cache.in_use = True
    cache.get_or_compute(model, docs(nlp), keep=True)
    copied, computed = duplicate(cache), counted(model, monkeypatch)
    for _ in range(2):
        copied.get_or_compute(model, docs(nlp), keep=True)
    assert computed == [4, 0] and not copied.in_use and copied.megabytes == 1


# In training


def test_a_later_epoch_reads_nothing_and_trains_the_same(weights, monkeypatch):
    """As from the readers of `spacy train`, the Docs of each epoch are new copies."""
    trained = {}
    for cache_mb in (0, 1):
        nlp = pipelines.listening(weights, frozen=True, cache_mb=cache_mb)
        optimizer = nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        computed = counted(nlp.get_pipe("elmo").model, monkeypatch)
        for _ in range(3):
            pipelines.step(nlp, optimizer)
        trained[cache_mb] = nlp.get_pipe("tagger").model.to_bytes()
        assert sum(computed) == (3 if cache_mb else 9)
    assert trained[0] == trained[1]


def test_layers_on_demand_come_from_the_cache(nlp, read):
    """elmo is in frozen_components. A Doc gets its own copy of the layers: changing it must not change those of the
    next epoch."""
    elmo, (_, computed) = nlp.get_pipe("elmo"), read
    expected = nlp("A cat.")._.elmo_layers
    with pytest.warns(UserWarning, match="did not run"):
        for _ in range(3):
            doc = nlp.make_doc("A cat.")
            elmo.source.layers([doc], True)
            assert_array_equal(doc._.elmo_layers, expected)
            doc._.elmo_layers[:] = 0
    assert computed == [1, 1, 0, 0]


def test_only_so_many_docs_are_remembered(nlp, read, monkeypatch):
    """Here one; the others are computed at each call."""
    monkeypatch.setattr("spacy_elmo.pipeline.store.cache.MOST_KEYS", 1)
    (model, computed), cache = read, LayerCache(1)
    for expected in (2, 2, 1):
        cache.get_or_compute(model, docs(nlp)[:2], keep=False)
        assert computed[-1] == expected


@pytest.mark.parametrize("disabled", [[], ["elmo"]])
def test_prediction_while_training(weights, monkeypatch, disabled):
    """Prediction takes what is in the cache, and computes a new Doc twice; if it comes a third time, it is part of an
    evaluation of the same dev part."""
    nlp = pipelines.listening(weights, frozen=True)
    pipelines.trained(nlp)
    elmo = nlp.get_pipe("elmo")
    known, new = " ".join(pipelines.SENTENCES[0][0]), "Something else altogether."
    expected = elmo.model.predict([nlp.make_doc(known), nlp.make_doc(new)])
    computed = counted(elmo.model, monkeypatch)
    with nlp.select_pipes(disable=disabled), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for seen in (1, 2, 2):
            for text, layers in zip((known, new), expected, strict=True):
                doc = nlp(text)
                pipelines.assert_same(doc._.elmo_layers, layers)
                # What a Doc gets is its own.
                doc._.elmo_layers[:] = 0
            assert sum(computed) == seen


def test_prediction_without_training_is_not_cached(weights, monkeypatch):
    nlp = pipelines.listening(weights, frozen=True)
    nlp.initialize(lambda: pipelines.examples(nlp))
    elmo = nlp.get_pipe("elmo")
    computed = counted(elmo.model, monkeypatch)
    for _ in range(3):
        nlp("Something else altogether.")
    assert sum(computed) == 3


def test_the_dev_part_takes_the_space_that_is_left(weights, monkeypatch):
    """Layers of training Docs keep their place."""
    nlp = pipelines.blank(weights, cache_mb=2.5 * ENTRY_MB)
    elmo = nlp.get_pipe("elmo")
    pipelines.training_layers(nlp, docs(nlp)[:2])
    computed = counted(elmo.model, monkeypatch)
    dev = ["Something", "else", "altogether", "and", "longer"]
    for _ in range(3):
        elmo.predict([Doc(nlp.vocab, words=dev)])
    pipelines.training_layers(nlp, docs(nlp)[:2])
    assert sum(computed) == 3
