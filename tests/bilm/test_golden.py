"""Float32 layers have the same bits with every kernel, every batch and every number of threads."""

import numpy as np
import pytest

from spacy_elmo.bilm.kernels import native
from spacy_elmo.weight_names import bundled_names
from tests import tiny
from tests.bilm import golden
from tests.threads import torch_threads

pytestmark = pytest.mark.skipif(native.processor() is None, reason="there are no kernels")
KINDS = [*native.processors(), "portable"] if native.library() else ["none"]


@pytest.mark.parametrize("kind", dict.fromkeys(KINDS))
def test_small_networks(kind, monkeypatch):
    monkeypatch.setenv(native.CHOICE, kind)
    expected = golden.expected()
    assert {*golden.NETWORKS, *bundled_names()} == expected.keys()
    for name in golden.NETWORKS:
        if (kind, name) == ("portable", "wide"):  # plain C would take ten seconds for all texts
            bilm = golden.network(name)[0].prepare_for_inference("float32")
            for text in ("odd bytes", "long"):
                layers = golden.layers_of(bilm, golden.texts()[text])
                assert golden.digest(layers) == expected[name][text]
        else:
            assert golden.small_network(name) == expected[name]


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("name", bundled_names())
def test_bundled_models(kind, name, monkeypatch):
    monkeypatch.setenv(native.CHOICE, kind)
    assert golden.bundled_model(name) == golden.expected()[name]


@pytest.mark.parametrize("name", ["characters", "three layers, odd sizes", "wide", "lexicon"])
@pytest.mark.parametrize("prepared", [False, True])
def test_beside_any_sentences(name, prepared):
    """The bits are the same alone, in batches of any size and order, with any state of the cache of words, in any
    number of threads, with a graph, and in chunks."""
    bilm, _ = golden.network(name)
    bilm = bilm.prepare_for_inference("float32") if prepared else bilm
    sentences = [s for kind in golden.texts().values() for s in kind[:29] if len(s) < 200]
    alone = [golden.layers_of(bilm, [sentence]) for sentence in sentences]
    random = np.random.default_rng(0)
    for trial, size in enumerate([2, 3, 7, 20, 90]):
        some = random.choice(len(sentences), size)
        with torch_threads(1 + trial % 3):
            together = golden.layers_of(bilm, [sentences[k] for k in some])
        expected = np.concatenate([alone[k] for k in some], 1)
        assert np.array_equal(together.view(np.int32), expected.view(np.int32))
    if not prepared:
        again = bilm.requires_grad_(True)
        layers = tiny.forward(again, sentences[-1:]).layers
        assert layers.requires_grad and np.array_equal(layers.detach().numpy(), alone[-1])


def test_chunks():
    bilm, _ = golden.network("three layers, odd sizes")
    sentences = golden.texts()["sentences"][:40]
    ids, words, lengths = tiny.batch(bilm, sentences)
    width = bilm.config.projection
    for max_words in (1, 50, 333):
        found = np.full((4, len(words), 2 * width), np.nan, dtype=np.float32)
        for chunk in bilm.forward_chunks(ids, words, lengths, max_words):
            for direction in (0, 1):
                part = slice(direction * width, (direction + 1) * width)
                for layer, numbers in enumerate(chunk.layers):
                    found[layer, chunk.places[direction], part] = numbers[direction]
        assert np.array_equal(found, golden.layers_of(bilm, sentences))
