"""Files of PyTorch before 1.6: no storage may be larger than the file, and checking this needs no memory."""

import pickle
import resource

import pytest
import torch
from torch import _utils
from torch._tensor import _rebuild_from_type_v2

from spacy_elmo.converters.readers.old_torch_file import check_storages
from spacy_elmo.converters.readers.torch_file import read_state_dict


@pytest.fixture
def path(tmp_path):
    tensor = torch.zeros(70_000)
    state = {"a": tensor, "shared": tensor[:5], "b": torch.zeros(3, dtype=torch.uint8)}
    torch.save(state, tmp_path / "weights.pkl", _use_new_zipfile_serialization=False)
    return tmp_path / "weights.pkl"


def test_shared_storages_count_once(path):
    check_storages(path)
    assert read_state_dict(path)["shared"].shape == (5,)


def test_a_storage_larger_than_the_file(path):
    # 70,000 is the only number of four bytes: J and the number.
    data = path.read_bytes().replace(
        b"J" + (70_000).to_bytes(4, "little"), b"J" + ((1 << 31) - 1).to_bytes(4, "little")
    )
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"weights.pkl is damaged: .* 2,147,483,650 .* 28"):
        read_state_dict(path)


@pytest.mark.parametrize(
    "start",
    [
        b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little"),  # a bytearray
        b"\x80\x02}r" + ((1 << 32) - 1).to_bytes(4, "little") + b".",  # the place of a memo
        b"\x80\x02X" + ((1 << 32) - 1).to_bytes(4, "little") + b"x",  # a text
    ],
)
def test_sizes_in_a_pickle(path, start):
    path.write_bytes(pickle.dumps(1) * 3 + start + path.read_bytes())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="weights.pkl is not"):
        read_state_dict(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


class Rebuilt:
    """An object that a pickle creates by calling a function."""

    def __init__(self, function, *arguments, state=None):
        self.call = (function, arguments, *([] if state is None else [state]))

    def __reduce__(self):
        return self.call


def rebuilt(way, storage, offset, shape, strides):
    arguments = (storage, offset, shape, strides)
    if way == "v2":
        return Rebuilt(_utils._rebuild_tensor_v2, *arguments, False, {})
    if way == "v3":
        return Rebuilt(_utils._rebuild_tensor_v3, *arguments, False, {}, torch.float32)
    if way == "from type":
        nested = (_utils._rebuild_tensor_v2, torch.Tensor, (*arguments, False, {}), {})
        return Rebuilt(_rebuild_from_type_v2, *nested)
    return Rebuilt(_utils._rebuild_tensor, storage, 0, (1,), (1,), state=arguments)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("way", ["v2", "v3", "from type", "state"])
@pytest.mark.parametrize(
    "offset, shape, strides",
    [
        (0, (1 << 34,), (1,)),
        (0, (2, 2), (1, 1 << 34)),
        (1 << 34, (1,), (1,)),
        (0, (13,), (1,)),
        (-1, (2,), (1,)),
    ],
)
def test_a_tensor_larger_than_its_storage(tmp_path, way, offset, shape, strides):
    """PyTorch would enlarge the storage, here by up to 64 GB."""
    path = tmp_path / "weights.pkl"
    tensor = rebuilt(way, torch.zeros(12).storage(), offset, shape, strides)
    torch.save({"x": tensor}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"weights.pkl is not .*strides .* 12 numbers"):
        read_state_dict(path)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0)[3:],
        torch.arange(12.0).view(3, 4).T,
        torch.arange(12.0)[::5],
        torch.ones(1).expand(5),
        torch.zeros(0, 4),
        torch.tensor(3.0),
        torch.nn.Parameter(torch.ones(2, 3)),
    ],
)
def test_any_view_of_a_storage(tmp_path, tensor):
    torch.save({"x": tensor}, tmp_path / "w.pkl", _use_new_zipfile_serialization=False)
    check_storages(tmp_path / "w.pkl")
    if tensor.shape != (5,):  # more than its data, which `read_state_dict` refuses
        assert torch.equal(read_state_dict(tmp_path / "w.pkl")["x"], tensor)
