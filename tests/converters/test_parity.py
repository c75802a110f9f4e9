"""Layers are compared with those of the original TensorFlow program (see the README of its folder)."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.converters.bilm_tf.hdf5_conversion import convert
from tests import tiny

PARITY = Path(__file__).parents[3] / "shared" / "parity"
pytestmark = pytest.mark.skipif(not PARITY.exists(), reason=f"{PARITY} is absent")


@pytest.mark.parametrize("name", ["skip_on", "skip_off"])
def test_top_layer_of_every_sentence(name):
    conversion = convert(PARITY / name)
    model = conversion.weights.build_bilm()
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
    model = convert(PARITY / "skip_on").weights.build_bilm()
    words = (PARITY / "skip_on" / "vocab_test.txt").read_text("utf8").splitlines()
    with h5py.File(PARITY / "skip_on" / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    assert len(expected) == 458
    np.testing.assert_allclose(model.encoder(model.token_ids(words)), expected, rtol=0, atol=1e-5)
