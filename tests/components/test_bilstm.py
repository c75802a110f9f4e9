"""The BiLSTM encoder. The oracle is torch's LSTM."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Adam, fix_random_seed

from spacy_elmo.bilm.kernels.fused_lstm import has_fused_lstm
from spacy_elmo.components.bilstm import bilstm

LENGTHS = [3, 1, 7, 2]


def sequences(width=5, lengths=LENGTHS, dtype="float32"):
    random = np.random.default_rng(0)
    return [random.normal(size=(length, width)).astype(dtype) for length in lengths]


@pytest.fixture(params=[("float32", 3), ("float32", 9), ("float64", 3), ("float64", 9)])
def layer(request):
    """A layer on vectors of a width below or above that of its outputs. In float32, C functions compute it."""
    dtype, width = request.param
    fix_random_seed()
    model = bilstm(8)
    model.initialize(X=sequences(width))
    for name in model.param_names:
        noise = np.random.normal(0, 0.3, model.get_param(name).shape)
        model.set_param(name, (model.get_param(name) + noise).astype(dtype))
    return model


def torch_gates(matrix):
    """Reorder the gates i, j, f, o as in torch: i, f, j, o."""
    i, j, f, o = matrix.chunk(4, -1)
    return torch.cat([i, f, j, o], -1)


def oracle(parameters, sequence):
    """Compute the output for one sequence in float64."""
    inputs, width = parameters["input"].shape[1], parameters["recurrent"].shape[1]
    outputs = []
    for direction, x in enumerate((sequence, sequence.flip(0))):
        weights = {
            "weight_ih_l0": torch_gates(parameters["input"][direction]).T,
            "weight_hh_l0": torch_gates(parameters["recurrent"][direction]).T,
            "bias_ih_l0": torch_gates(parameters["bias"][direction]),
            "bias_hh_l0": torch.zeros(4 * width, dtype=x.dtype),
        }
        lstm = torch.nn.LSTM(inputs, width, dtype=x.dtype)
        y, _ = torch.func.functional_call(lstm, weights, (x,))
        outputs.append(y if direction == 0 else y.flip(0))
    return torch.cat(outputs, 1)


def test_outputs_and_gradients_equal_those_of_torch(layer):
    dtype, width = layer.get_param("bias").dtype, layer.get_dim("nI")
    close = {"atol": 1e-5 if dtype == "float32" else 1e-12, "rtol": 0}
    X = sequences(width, dtype=dtype)
    dY = sequences(8, dtype=dtype)
    Y, backprop = layer(X, is_train=True)
    dX = backprop(dY)
    for got, own in zip(layer.predict(X), Y, strict=True):
        np.testing.assert_array_equal(got, own)
    leaves = {
        name: torch.tensor(layer.get_param(name), dtype=torch.float64, requires_grad=True)
        for name in layer.param_names
    }
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in X]
    expected = [oracle(leaves, x) for x in inputs]
    torch.autograd.backward(expected, [torch.tensor(d, dtype=torch.float64) for d in dY])
    for got, own in zip(Y, expected, strict=True):
        np.testing.assert_allclose(got, own.detach(), **close)
    for got, own in zip(dX, inputs, strict=True):
        np.testing.assert_allclose(got, own.grad, **close)
    for name, leaf in leaves.items():
        np.testing.assert_allclose(layer.get_grad(name), leaf.grad, **close)


@pytest.mark.skipif(not has_fused_lstm(torch.float32), reason="there are no kernels")
def test_a_sequence_has_the_same_vectors_whatever_its_batch_mates():
    fix_random_seed()
    lengths = np.random.default_rng(1).integers(1, 40, 64).tolist()
    X = sequences(24, lengths)
    encoder = spacy.registry.architectures.get("spacy-elmo.BiLSTMEncoder.v1")(width=32, depth=2)
    encoder.initialize(X=X)
    for size in (2, 7, 64):
        batches = [X[start : start + size] for start in range(0, 64, size)]
        got = [y for batch in batches for y in encoder.predict(batch)]
        for x, y in zip(X, got, strict=True):
            assert np.array_equal(encoder.predict([x])[0], y)


FORK = """
import os, signal
import numpy as np, torch
from spacy_elmo.components.bilstm import bilstm
torch.set_num_threads(2)
layer, X = bilstm(32), [np.ones((400, 32), "f")]
layer.initialize(X=X)
Y, backprop = layer(X, is_train=True)
backprop(Y)
child = os.fork()
if not child:
    signal.alarm(60)
    layer.predict(X)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_a_fork_after_torch_used_threads():
    """The child would wait for threads that it does not have."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert done.stdout.strip() == "0", done.stderr


def test_layers_after_the_first_add_their_input():
    encoder = spacy.registry.architectures.get("spacy-elmo.BiLSTMEncoder.v1")(width=8, depth=3)
    X = sequences()
    encoder.initialize(X=X)
    first, *others = (layer for layer in encoder.walk() if layer.name == "bilstm")
    expected = first.predict(X)
    for other in others:
        expected = [x + y for x, y in zip(expected, other.predict(expected), strict=True)]
    assert len(others) == 2
    for got, own in zip(encoder.predict(X), expected, strict=True):
        np.testing.assert_array_equal(got, own)


def test_dropout_in_training_only(layer):
    X = sequences(layer.get_dim("nI"), dtype=layer.get_param("bias").dtype)
    layer.attrs["dropout_rate"] = 0.5
    whole = layer.ops.flatten(layer.predict(X))
    dropped = layer.ops.flatten(layer(X, is_train=True)[0])
    kept = dropped != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropped[kept], 2 * whole[kept], rtol=1e-5)


def test_the_optimizer_averages_its_parameters():
    """Averages never reach the parameters inside `spacy.TorchBiLSTMEncoder.v1`."""
    optimizer = Adam(0.1, use_averages=True)
    X = sequences()
    layer = bilstm(8)
    layer.initialize(X=X)
    for _ in range(3):
        Y, backprop = layer(X, is_train=True)
        backprop(Y)
        layer.finish_update(optimizer)
    last = layer.predict(X)[0]
    with layer.use_params(optimizer.averages):
        averaged = layer.predict(X)[0]
    assert abs(averaged - last).max() > 1e-3
    assert np.array_equal(layer.predict(X)[0], last)


def test_the_encoder_of_an_embedding(tmp_path):
    config = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 16,
            "attrs": ["NORM"],
            "rows": [50],
            "include_static_vectors": False,
        },
        "encode": {"@architectures": "spacy-elmo.BiLSTMEncoder.v1", "width": 16, "depth": 2},
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": config})
    nlp.initialize()
    nlp.to_disk(tmp_path)
    texts = ["one two three", "", "four"]
    loaded = spacy.load(tmp_path)
    for one, other in zip(nlp.pipe(texts), loaded.pipe(texts), strict=True):
        assert one.tensor.shape == (len(one), 16)
        assert np.array_equal(one.tensor, other.tensor)
    empty = Doc(nlp.vocab)
    assert nlp.get_pipe("tok2vec").predict([empty])[0].shape == (0, 16)


@pytest.mark.parametrize("width", [4, 60])
@pytest.mark.parametrize("is_train", [True, False])
def test_vectors_of_another_width_are_refused(layer, width, is_train):
    X = sequences(width, dtype=layer.get_param("bias").dtype)
    with pytest.raises(RuntimeError, match=str(width)):
        layer(X, is_train=is_train)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="width of a BiLSTM is 5; it must be even"):
        bilstm(5)
