"""The cache of layers between epochs, and its use in training and prediction."""

import copy
import pickle
import warnings
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_elmo.pipeline.encode.encoder import configure, shim_of
from spacy_elmo.pipeline.encode.spans import rule_spans, whole_docs
from spacy_elmo.pipeline.factory_options import BiLMOptions
from spacy_elmo.pipeline.store.cache import LayerCache, keys_of
from tests import pipelines

WORDS = [["a", "cat", "sat", "on", number] for number in "0123"]
# Layers of (3, 5, 10) float32, and what an entry costs beside them.
ENTRY_MB = (3 * 5 * 10 * 4 + 200) / 1e6


LAYERS = SimpleNamespace(nbytes=3 * 5 * 10 * 4)


def docs(nlp, texts=WORDS):
    return [Doc(nlp.vocab, words=words) for words in texts]


def test_least_recently_used_goes_first():
    cache = LayerCache(3 * ENTRY_MB)
    for key in (b"a", b"b", b"c", b"a", b"d"):
        if cache.find([key], "v") == [None]:
            cache.add([key], [LAYERS], "v", evict=True)
    assert cache.find([b"a", b"b", b"c", b"d"], "v") == [LAYERS, None, LAYERS, LAYERS]


def test_what_is_not_kept():
    """Too large layers, layers of other weights, and all layers in a copy."""
    cache = LayerCache(0.99 * ENTRY_MB)
    cache.add([b"a"], [LAYERS], "", evict=True)
    assert cache.find([b"a"], "") == [None]
    cache = LayerCache(1)
    assert cache.find([b"a"], "new") == [None]
    cache.add([b"a"], [LAYERS], "old", evict=True)
    assert cache.find([b"a"], "new") == [None]
    cache.add([b"a"], [LAYERS], "new", evict=True)
    cache.in_use = True
    for copied in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert copied.find([b"a"], "new") == [None]
        assert not copied.in_use and copied.megabytes == 1
    assert cache.find([b"a"], "new") == [LAYERS] and cache.find([b"a"], "newer") == [None]


def test_layers_of_other_weights_are_forgotten(nlp, monkeypatch):
    model = nlp.get_pipe("elmo").model
    shim, computed = shim_of(model), pipelines.counted(model, monkeypatch)
    average = {(shim.id, "lstm.0.bias"): np.zeros_like(shim.bilm.lstm[0].bias.detach())}
    pipelines.training_layers(nlp, docs(nlp))
    with shim.use_params(average):
        pipelines.training_layers(nlp, docs(nlp))
    pipelines.training_layers(nlp, docs(nlp))
    shim.initialize()
    pipelines.training_layers(nlp, docs(nlp))
    shim.configure(BiLMOptions(frozen=False))
    shim.bilm.lstm[1].bias.grad = shim.bilm.lstm[1].bias.detach() * 0 + 1
    shim.finish_update(Adam(0.1))
    pipelines.training_layers(nlp, docs(nlp))
    pipelines.training_layers(nlp, docs(nlp))
    assert computed == [4, 4, 4, 4, 4, 0]


def test_weights_that_change_while_layers_are_computed(nlp, monkeypatch):
    """Another thread trains the weights before the layers of the old weights are stored."""
    model, doc = nlp.get_pipe("elmo").model, docs(nlp)[0]
    original = model._func

    def compute_slowly(model, some, is_train):
        monkeypatch.setattr(model, "_func", original)
        computed = original(model, some, is_train)
        pipelines.change(nlp, 1)
        return computed

    monkeypatch.setattr(model, "_func", compute_slowly)
    (old,) = pipelines.training_layers(nlp, [doc])
    (new,) = model.predict([doc])
    assert np.abs(new - old).max() > 0.01
    assert_array_equal(*pipelines.training_layers(nlp, [doc]), new)


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


# In training


def test_a_later_epoch_reads_nothing_and_trains_the_same(weights, monkeypatch):
    """As from the readers of `spacy train`, the Docs of each epoch are new copies."""
    trained = {}
    for cache_mb in (0, 1):
        nlp = pipelines.listening(weights, frozen=True, cache_mb=cache_mb)
        optimizer = nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        computed = pipelines.counted(nlp.get_pipe("elmo").model, monkeypatch)
        for _ in range(3):
            pipelines.step(nlp, optimizer)
        trained[cache_mb] = nlp.get_pipe("tagger").model.to_bytes()
        assert sum(computed) == (3 if cache_mb else 9)
    assert trained[0] == trained[1]


def test_layers_on_demand_come_from_the_cache(nlp, monkeypatch):
    """elmo is in frozen_components. A Doc gets its own copy of the layers: changing it must not change those of the
    next epoch."""
    elmo, computed = (
        nlp.get_pipe("elmo"),
        pipelines.counted(nlp.get_pipe("elmo").model, monkeypatch),
    )
    expected = nlp("A cat.")._.elmo_layers
    with pytest.warns(UserWarning, match="did not run"):
        for _ in range(3):
            doc = nlp.make_doc("A cat.")
            elmo.source.layers([doc], True)
            assert_array_equal(doc._.elmo_layers, expected)
            doc._.elmo_layers[:] = 0
    assert computed == [1, 1, 0, 0]


@pytest.mark.parametrize("disabled", [[], ["elmo"]])
def test_prediction_while_training(weights, monkeypatch, disabled):
    """Prediction takes what is in the cache, and caches a new Doc, which can be part of an evaluation."""
    nlp = pipelines.listening(weights, frozen=True)
    pipelines.trained(nlp)
    elmo = nlp.get_pipe("elmo")
    known, new = " ".join(pipelines.SENTENCES[0][0]), "Something else altogether."
    expected = elmo.model.predict([nlp.make_doc(known), nlp.make_doc(new)])
    computed = pipelines.counted(nlp.get_pipe("elmo").model, monkeypatch)
    with nlp.select_pipes(disable=disabled), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(2):
            for text, layers in zip((known, new), expected, strict=True):
                doc = nlp(text)
                pipelines.assert_same(doc._.elmo_layers, layers)
                # What a Doc gets is its own.
                doc._.elmo_layers[:] = 0
            assert sum(computed) == 1


def test_prediction_without_training_is_not_cached(weights, monkeypatch):
    nlp = pipelines.listening(weights, frozen=True)
    nlp.initialize(lambda: pipelines.examples(nlp))
    computed = pipelines.counted(nlp.get_pipe("elmo").model, monkeypatch)
    for _ in range(3):
        nlp("Something else altogether.")
    assert sum(computed) == 3


def test_the_dev_part_takes_the_space_that_is_left(weights, monkeypatch):
    """Layers of training Docs keep their place."""
    nlp = pipelines.blank(weights, cache_mb=2.5 * ENTRY_MB)
    elmo = nlp.get_pipe("elmo")
    pipelines.training_layers(nlp, docs(nlp)[:2])
    computed = pipelines.counted(nlp.get_pipe("elmo").model, monkeypatch)
    dev = ["Something", "else", "altogether", "and", "longer"]
    for _ in range(3):
        elmo.predict([Doc(nlp.vocab, words=dev)])
    pipelines.training_layers(nlp, docs(nlp)[:2])
    assert sum(computed) == 3
