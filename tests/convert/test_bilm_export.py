"""Our weights to bilm-tf's files: the way there and back changes nothing."""

import itertools
import json

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.convert.bilm_export import export, options_of
from spacy_elmo.convert.bilm_hdf5 import convert, to_arrays
from tests import tiny
from tests.convert import foreign


@pytest.mark.parametrize(
    "words, dim, layers, clip, skip",
    itertools.product([0, len(tiny.VOCABULARY)], [5, 7], [1, 2], [None, 2.0], [True, False]),
)
def test_there_and_back(tmp_path, words, dim, layers, clip, skip):
    """Every bit comes back, and the arrays are those that an independent writer of the format makes."""
    model = tiny.bilm(
        tiny.config(words=words, dim=dim, layers=layers, cell_clip=clip, proj_clip=clip, skip=skip)
    )
    weights = Weights.of(model, vocabulary=tiny.VOCABULARY[:words])
    expected = foreign.arrays_of(model)
    arrays = to_arrays(weights)
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])
    assert options_of(model.config) == foreign.options_of(model.config)
    export(weights, tmp_path / "out")
    back = convert(tmp_path / "out").weights
    assert back.vocabulary == weights.vocabulary
    if not words:  # whose files say nothing of characters
        assert back.config == weights.config
    assert all(torch.equal(tensor, weights.tensors[name]) for name, tensor in back.tensors.items())


def test_another_forget_bias_goes_into_the_bias(tmp_path):
    model = tiny.bilm(tiny.config(forget_bias=0.0))
    export(Weights.of(model), tmp_path)
    back = convert(tmp_path).weights
    assert back.config.forget_bias == 1.0
    sentences = [["a", "cat"], ["extraordinarily"]]
    layers = [tiny.read(bilm, sentences).layers for bilm in (model, back.bilm())]
    torch.testing.assert_close(*layers, atol=1e-6, rtol=0)


def test_head_and_vocabulary(tmp_path):
    model, head = tiny.bilm(tiny.config()), Head(3, tiny.config().projection)
    with torch.no_grad():
        head.bias.normal_()
    files = export(Weights.of(model, head, vocabulary=["<S>", "</S>", "<UNK>"]), tmp_path)
    assert {file.name for file in files} == {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "vocab.txt").read_text("utf8") == "<S>\n</S>\n<UNK>\n"
    assert json.loads((tmp_path / "options.json").read_text())["lstm"]["dim"] == model.config.dim
    with h5py.File(tmp_path / "softmax_weights.hdf5") as file:
        np.testing.assert_array_equal(file["softmax/W"][()], head.weight.detach().numpy())
        np.testing.assert_array_equal(file["softmax/b"][()], head.bias.detach().numpy()[:, 0])
