"""Layers are compared with those of the original TensorFlow program (see the README of its folder)."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.converters.bilm_tf import convert_hdf5
from tests import tiny

PARITY = Path(__file__).parents[3] / "shared" / "parity"
pytestmark = pytest.mark.skipif(not PARITY.exists(), reason=f"{PARITY} is absent")


@pytest.mark.parametrize("name", ["skip_on", "skip_off"])
def test_top_layer_of_every_sentence(name):
    model = convert_hdf5(PARITY / name)[0].build_bilm()
    assert model.config.skip == (name == "skip_on")
    rows = json.loads((PARITY / name / "sentences.json").read_text("utf8"))
    expected = [h5py.File(PARITY / name / f"lm_embeddings_{r}.hdf5") for r in range(len(rows))]
    state, compared = None, 0
    for k, batch in enumerate(zip(*rows, strict=True)):
        sentences = [sentence.split() for sentence in batch]
        # The program carries each row's state on, and the closing boundary has been read before that.
        got = tiny.read(model, sentences, state, closing=True)
        state = got.state
        tops = got.layers[-1].split([len(sentence) for sentence in sentences])
        for file, top in zip(expected, tops, strict=True):
            np.testing.assert_allclose(top, np.concatenate(file[str(k)], 1), rtol=0, atol=1e-5)
            compared += 1
    assert compared == 30


@torch.no_grad()
def test_token_vectors():
    """The vectors of words by TensorFlow equal ours, and may replace the characters of a model. The vocabulary has no
    <UNK>, as bilm-tf writes it."""
    folder = PARITY / "skip_on"
    vectors, vocabulary = folder / "elmo_token_embeddings.hdf5", folder / "vocab_test.txt"
    model = convert_hdf5(folder)[0].build_bilm()
    words = vocabulary.read_text("utf8").splitlines()
    with h5py.File(vectors) as file:
        expected = file["embedding"][...]
    assert len(expected) == 458
    np.testing.assert_allclose(model.encoder(model.token_ids(words)), expected, rtol=0, atol=1e-5)
    cached, _ = convert_hdf5(folder, token_vectors=vectors, vocabulary=vocabulary)
    sentences = [
        sentence.split() for sentence in json.loads((folder / "sentences.json").read_text())[0]
    ]
    layers = [tiny.read(bilm, sentences).layers for bilm in (cached.build_bilm(), model)]
    torch.testing.assert_close(*layers, atol=1e-5, rtol=0)
