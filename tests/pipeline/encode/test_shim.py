"""Loading, copies, averages and bytes of the biLM inside a thinc model."""

import contextlib
import copy
import itertools
import pickle
import threading
import time
import uuid
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import safetensors.torch
import torch
from thinc.api import Adam

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.encode import shim as module
from spacy_elmo.pipeline.encode.shim import BiLMShim
from spacy_elmo.pipeline.factory_options import BiLMOptions
from tests import tiny


@pytest.fixture
def shim(weights):
    shim = BiLMShim()
    shim.configure(BiLMOptions(weights=str(weights)))
    return shim


def train(shim, frozen=False):
    shim.configure(replace(shim.options, frozen=frozen))


def values(shim):
    return {name: tensor.clone() for name, tensor in shim.bilm.state_dict().items()}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


SENTENCES = [["a", "cat"], ["sat"]]


def read(bilm):
    return tiny.forward(bilm, SENTENCES).layers


def give_gradients(shim, value=1.0):
    for parameter in shim.bilm.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.full_like(parameter, value)


def test_nothing_is_read_before_the_first_use(tmp_path):
    shim = BiLMShim()
    shim.configure(BiLMOptions(weights=str(tmp_path / "absent.safetensors")))
    with pytest.raises(OSError, match="absent"):
        shim.bilm  # noqa: B018


def test_loading_is_one_change(shim, monkeypatch):
    """Of two threads that read the version after it, none gives the weights another one."""
    numbers = itertools.count()
    monkeypatch.setattr(uuid, "uuid4", lambda: Mock(hex=next(numbers)))
    versions = []
    for load in (shim.ensure_loaded, shim.initialize, lambda: shim.from_bytes(shim.to_bytes())):
        load()
        versions.append(shim.version)
    assert versions == [0, 1, 2]


def test_threads_find_the_same_version_after_a_change(shim, monkeypatch):
    both, uuid4 = threading.Barrier(2), uuid.uuid4

    def wait_for_the_other():
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.2)
        return uuid4()

    old, versions = shim.version, []
    with torch.no_grad():
        shim.bilm.lstm[0].bias += 1
    monkeypatch.setattr(uuid, "uuid4", wait_for_the_other)
    threads = [threading.Thread(target=lambda: versions.append(shim.version)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions == [shim.version] * 2 != [old] * 2


def test_first_use_from_many_threads_loads_once(shim, monkeypatch):
    calls = []

    def slow_load(path):
        calls.append(path)
        time.sleep(0.05)
        return Weights.from_bytes(path.read_bytes())

    monkeypatch.setattr(module.Weights, "load", slow_load)
    actual = []
    threads = [threading.Thread(target=lambda: actual.append(shim.bilm)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert all(bilm is actual[0] for bilm in actual) and len(actual) == 8


def test_exception_of_a_signal_handler_while_loading(shim, monkeypatch):
    """It is not taken for a damaged file."""

    class Timeout(Exception):
        pass

    def interrupted(data):
        raise Timeout

    monkeypatch.setattr(safetensors.torch, "load", interrupted)
    with pytest.raises(Timeout):
        shim.bilm  # noqa: B018


def test_random_weights_only_when_asked():
    shim = BiLMShim()
    for use in (lambda: shim.bilm, shim.to_bytes):
        with pytest.raises(ValueError, match=r"weights = null.*nlp.initialize"):
            use()
    copy.deepcopy(shim)
    shim.initialize()
    first = values(shim)
    assert shim.config == BiLMConfig()
    shim.initialize()
    assert not equal(first, values(shim))


def test_initialize_reads_again(shim):
    first = values(shim)
    with torch.no_grad():
        shim.bilm.lstm[0].bias += 1
    shim.initialize()
    assert equal(first, values(shim))


def test_word_input_keeps_its_vocabulary(tmp_path):
    bilm = tiny.bilm(tiny.config(n_words=8))
    Weights.from_bilm(bilm, vocabulary=tiny.VOCABULARY).save(tmp_path / "w.safetensors")
    shim = BiLMShim()
    shim.configure(BiLMOptions(weights=str(tmp_path / "w.safetensors")))
    for other in (shim, BiLMShim().from_bytes(shim.to_bytes()), shim.copy()):
        assert torch.equal(read(other.bilm_for_inference()), read(bilm))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_bytes_suffice_and_keep_the_values(tmp_path, dtype):
    path = tmp_path / "w.safetensors"
    Weights.from_bilm(tiny.bilm(tiny.config()), card={"name": "t"}, dtype=dtype).save(path)
    shim = BiLMShim()
    shim.configure(BiLMOptions(weights=str(path)))
    data = shim.to_bytes()
    path.unlink()
    loaded = BiLMShim().from_bytes(data)
    assert equal(values(shim), values(loaded))
    assert Weights.from_bytes(data).card == {"name": "t"}
    # Half of the bytes where half of them hold all.
    assert {t.dtype for t in Weights.from_bytes(data).tensors.values()} == {dtype}


def test_trained_weights_are_saved_in_full(shim):
    with torch.no_grad():
        for parameter in shim.bilm.parameters():
            parameter.copy_(parameter.half())
        shim.bilm.lstm[0].bias += 1e-5
    assert equal(values(shim), values(BiLMShim().from_bytes(shim.to_bytes())))


def test_damaged_bytes(shim):
    with pytest.raises(ValueError, match="not a readable weights file"):
        BiLMShim().from_bytes(shim.to_bytes()[:-10])


@pytest.mark.parametrize(
    "duplicate",
    [BiLMShim.copy, copy.copy, copy.deepcopy, lambda shim: pickle.loads(pickle.dumps(shim))],
)
@pytest.mark.parametrize("loaded", [True, False])
def test_copies_are_independent(shim, duplicate, loaded):
    """A copied `PyTorchShim` keeps its id, so the copy and the original would share the optimizer's moments."""
    train(shim)
    if loaded:
        shim.bilm  # noqa: B018
    copied = duplicate(shim)
    for one in (shim, copied):
        one.options = replace(one.options, weights="gone")
    assert copied.id != shim.id
    assert not copied.options.frozen
    before = values(shim)
    assert equal(before, values(copied))
    optimizer = Adam(0.1)
    for one in (copied, shim):
        give_gradients(one)
        one.finish_update(optimizer)
    assert set(optimizer.nr_update.values()) == {1}
    assert equal(values(shim), values(copied))
    give_gradients(copied)
    copied.finish_update(optimizer)
    assert not equal(values(shim), values(copied))


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_a_frozen_bilm_does_not_move(shim, frozen, late):
    if late:
        shim.bilm  # noqa: B018
    train(shim, frozen)
    before = values(shim)
    for parameter in shim.bilm.parameters():
        parameter.grad = torch.ones_like(parameter)  # even where somebody has put a gradient
    shim.finish_update(Adam(0.1))
    after = values(shim)
    assert all(torch.equal(before[name], after[name]) == frozen for name in before)
    assert all(parameter.grad is None for parameter in shim.bilm.parameters())


@pytest.mark.parametrize("lr_scale", [1.0, 0.25])
def test_optimizer_steps_are_those_of_torch(shim, lr_scale):
    """thinc's Adam with plain settings is compared with torch's. They add their ε at different places, so gradients are
    made too large for it to matter."""
    shim.configure(replace(shim.options, frozen=False, lr_scale=lr_scale))
    reference = copy.deepcopy(shim.bilm)
    torch_adam = torch.optim.Adam(reference.parameters(), lr=0.01)
    ours = Adam(0.01 / lr_scale, L2=0.0, grad_clip=0.0)
    for _ in range(3):
        for network in (shim.bilm, reference):
            (1e6 * read(network) ** 2).sum().backward()
        shim.finish_update(ours)
        torch_adam.step()
        torch_adam.zero_grad()
    for name, parameter in reference.named_parameters():
        difference = (shim.bilm.get_parameter(name) - parameter).abs().max()
        assert difference < 1e-5, name


def test_averages_reach_the_network(shim):
    """`PyTorchShim.use_params` looks for string keys, but the optimizer's keys are tuples, so it would change
    nothing."""
    train(shim)
    optimizer = Adam(0.1, use_averages=True)
    for value in (1.0, -3.0):
        give_gradients(shim, value)
        shim.finish_update(optimizer)
    trained, version = values(shim), shim.version
    averages = optimizer.averages
    with shim.use_params(averages):
        for name, parameter in shim.bilm.named_parameters():
            np.testing.assert_array_equal(parameter.detach().numpy(), averages[shim.id, name])
        assert not equal(trained, values(shim))
        with torch.no_grad():
            shim.bilm.lstm[0].bias += 1  # stays inside
    assert equal(trained, values(shim))
    # Another thread may have stored layers of the averages under the old version.
    assert shim.version != version
    with pytest.raises(RuntimeError), shim.use_params(averages):
        raise RuntimeError
    assert equal(trained, values(shim))
    with shim.use_params({}):
        assert equal(trained, values(shim))


def test_averages_use_the_memory_of_the_parameters(shim):
    """Another thread may be reading this memory, so it must not be freed at the end of the `with` block."""
    train(shim)
    optimizer = Adam(0.1, use_averages=True)
    for value in (1.0, -3.0):
        give_gradients(shim, value)
        shim.finish_update(optimizer)
    memory = {name: tensor.numpy() for name, tensor in shim.bilm.state_dict().items()}
    trained = {name: array.copy() for name, array in memory.items()}
    with shim.use_params(optimizer.averages):
        for name, array in memory.items():
            np.testing.assert_array_equal(array, optimizer.averages[shim.id, name])
        inside = {name: tensor.numpy() for name, tensor in shim.bilm.state_dict().items()}
    for name, array in trained.items():
        np.testing.assert_array_equal(memory[name], array)
        np.testing.assert_array_equal(inside[name], array)


@pytest.mark.parametrize("loaded", [True, False])
def test_device(shim, monkeypatch, loaded):
    """The network is asked to move; there may be no second device."""
    moves = []
    monkeypatch.setattr(module.BiLM, "to", lambda bilm, device: moves.append(device) or bilm)
    if loaded:
        shim.bilm  # noqa: B018
        moves.clear()
    shim.to_device("gpu", 1)
    shim.bilm  # noqa: B018
    shim.to_device("cpu", -1)
    assert moves == [torch.device("cuda", 1), torch.device("cpu")]
