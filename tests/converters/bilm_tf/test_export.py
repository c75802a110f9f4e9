"""Export to bilm-tf's files: a round trip changes nothing."""

import itertools
import json

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.bilm_tf.export import FILES, export, options_of
from spacy_elmo.converters.bilm_tf.hdf5_conversion import convert, to_arrays
from tests import tiny
from tests.converters import foreign


@pytest.mark.parametrize(
    "words, dim, layers, clip, skip",
    itertools.product([0, len(tiny.VOCABULARY)], [5, 7], [1, 2], [None, 2.0], [True, False]),
)
def test_there_and_back(tmp_path, words, dim, layers, clip, skip):
    """A round trip keeps every bit, and the arrays equal those of an independent writer of the format."""
    model = tiny.bilm(
        tiny.config(
            n_words=words, dim=dim, layers=layers, cell_clip=clip, proj_clip=clip, skip=skip
        )
    )
    weights = Weights.from_bilm(model, vocabulary=tiny.VOCABULARY[:words])
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
    export(Weights.from_bilm(model), tmp_path)
    back = convert(tmp_path).weights
    assert back.config.forget_bias == 1.0
    sentences = [["a", "cat"], ["extraordinarily"]]
    layers = [tiny.read(bilm, sentences).layers for bilm in (model, back.build_bilm())]
    torch.testing.assert_close(*layers, atol=1e-6, rtol=0)


@pytest.mark.parametrize("words", [0, len(tiny.VOCABULARY)])
def test_from_their_file_and_back(tmp_path, words):
    """A round trip keeps every dataset byte for byte, including the softmax."""
    model = tiny.bilm(tiny.config(n_words=words))
    foreign.write_model(tmp_path / "in", model, tiny.VOCABULARY)
    rows = np.linspace(-1, 1, 8 * 5, dtype=np.float32).reshape(8, 5)
    softmax = {"softmax/W": rows, "softmax/b": rows[:, 0] / 3}
    foreign.write_arrays(tmp_path / "in" / "softmax.hdf5", softmax)
    files = export(convert(tmp_path / "in").weights, tmp_path / "out")
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    for ours, theirs in (("weights", "lm_weights"), ("softmax_weights", "softmax")):
        got = datasets(tmp_path / "out" / f"{ours}.hdf5")
        assert got == datasets(tmp_path / "in" / f"{theirs}.hdf5")
    for name in ("options.json", "vocab.txt"):
        texts = [(tmp_path / folder / name).read_text("utf8") for folder in ("in", "out")]
        if name == "options.json":
            texts = [json.loads(text) for text in texts]
        assert texts[0] == texts[1]


def datasets(path):
    actual = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, node: (
                actual.update({name: (node.dtype.str, node.shape, node[()].tobytes())})
                if isinstance(node, h5py.Dataset)
                else None
            )
        )
    assert actual
    return actual


@pytest.mark.parametrize(
    "fields, words, problem",
    [
        ({"n_words": 8, "word_dim": 3}, tiny.VOCABULARY, "in ELMoForManyLangs"),
        ({"n_symbols": 9}, [], "in ELMoForManyLangs"),
        ({"dim": 5, "square_projections": True}, [], "a projection between equal sizes"),
        (
            {"filters": ((1, 5),), "square_projections": True},
            [],
            "a projection between equal sizes",
        ),
        ({"n_words": 8}, ["<S>", "</S>", "<UNK>", " a", "b", "c", "d", "e"], r"express: \[' a'\]"),
        (
            {"n_words": 8},
            ["<S>", "</S>", "<UNK>", "a\rb", "b", "c", "d", "e"],
            r"express: \['a\\rb'\]",
        ),
    ],
)
def test_what_bilm_tf_lacks(tmp_path, fields, words, problem):
    config = tiny.config(**fields)
    weights = Weights(config, {}, list(words))
    with pytest.raises(ValueError, match=problem):
        export(weights, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def weights():
    return Weights.from_bilm(tiny.bilm(tiny.config()))


def test_earlier_export_is_kept_or_replaced(tmp_path, weights):
    """With `force`, no file of the earlier export remains, because its softmax would be read as part of the new one."""
    head = Head(3, tiny.config().projection)
    export(
        Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=["<S>", "</S>", "<UNK>"]),
        tmp_path,
    )
    (tmp_path / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {*FILES, "notes.txt"}
    with pytest.raises(FileExistsError, match="options.json, .*vocab.txt.*--force"):
        export(weights, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    export(weights, tmp_path, force=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"options.json", "weights.hdf5", "notes.txt"}
    assert convert(tmp_path).weights.tensors.keys() == weights.tensors.keys()


def test_folder_that_cannot_be(tmp_path, weights):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="file is a file"):
        export(weights, tmp_path / "file", force=True)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        export(weights, tmp_path / "nowhere" / "out")
    assert (tmp_path / "file").read_text() == "mine"
