"""Layers of ELMoForManyLangs itself compared with ours, from the same files.

Runs where the environment variable ELMO_MANY_LANGS names a folder with the program:

    pip install --no-deps --target FOLDER elmoformanylangs==0.0.4.post2
    ELMO_MANY_LANGS=FOLDER python -m pytest tests/converters/test_against_many_langs.py

Of what it imports, `overrides` (a decorator that does nothing here) is put in its place.
"""

import importlib
import os
import random
import sys
import types

import numpy as np
import pytest
import torch

from spacy_elmo.converters.many_langs import convert
from tests import tiny
from tests.converters import foreign_many_langs as foreign

PEER = os.environ.get("ELMO_MANY_LANGS")
pytestmark = [
    pytest.mark.skipif(PEER is None, reason="ELMO_MANY_LANGS names no folder with the program"),
    # Files that it never closes, and what Python and PyTorch no longer like.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def peer():
    """Return the package of ELMoForManyLangs."""
    overrides = types.ModuleType("overrides")
    overrides.overrides = lambda method: method
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "overrides", overrides)
        patch.syspath_prepend(PEER)
        package = importlib.import_module("elmoformanylangs")
        importlib.import_module("elmoformanylangs.biLM")
        yield package


def write(peer, folder, options, seed):
    """Write a model as ELMoForManyLangs does after training, with numbers that are large enough to matter."""
    words, characters = foreign.lexicons(options)
    embedder, layer = options["token_embedder"], peer.modules.embedding_layer.EmbeddingLayer
    tables = [
        layer(dim, {s: row for row, s in enumerate(symbols)}) if dim else None
        for dim, symbols in ((embedder["word_dim"], words), (embedder["char_dim"], characters))
    ]
    model = peer.biLM.Model(options, *tables, n_class=len(words))
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    foreign.write(folder, options, {}, {})
    model.save_model(str(folder), False)


def architecture(seed):
    choose = random.Random(seed).choice
    word_dim, char_dim = choose([(3, 4), (6, 2), (3, 4), (3, 0), (0, 4)])
    filters = [[[1, 2], [2, 3], [4, 4]], [[3, 5]], [[10, 3], [1, 1]], [[7, 2], [7, 1], [2, 6]]]
    return foreign.options(
        word_dim=word_dim, char_dim=char_dim, filters=choose(filters), n_highway=choose([0, 1, 2]),
        activation=choose(["relu", "tanh"]), max_characters_per_token=choose([10, 12, 50]),
        projection_dim=5, dim=choose([4, 5, 9]), n_layers=choose([1, 2, 3]),
        cell_clip=choose([None, 0, 0.3, 3]), proj_clip=choose([None, 0, 0.2, 3]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_every_layer(peer, tmp_path, seed):
    write(peer, tmp_path, architecture(seed), seed)
    sentences = random.Random(seed).sample(foreign.SENTENCES, len(foreign.SENTENCES))
    # It carries its state from batch to batch, so it is new here, and all sentences are one batch.
    embedder = peer.Embedder(str(tmp_path), batch_size=len(sentences))
    assert not embedder.use_cuda
    expected = embedder.sents2elmo(sentences, output_layer=-2)
    model = convert(tmp_path)[0].build_bilm()
    got = tiny.read(model, sentences).layers.split([len(sentence) for sentence in sentences], 1)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
