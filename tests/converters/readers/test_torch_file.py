"""Files of `torch.save` are read without executing code."""

import os
import pickle
import warnings
import zipfile
from collections import OrderedDict

import pytest
import torch

from spacy_elmo.converters.readers.torch_file import read_state_dict

TENSORS = {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2]).half()}


class Code:
    """An object that runs a command when it is unpickled."""

    def __init__(self, path):
        self.command = f"touch {path}"

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture(params=[True, False], ids=["zip", "old"])
def save(request, tmp_path):
    """Write a file in PyTorch's format, or in its format before 1.6."""

    def write(content):
        path = tmp_path / "weights.th"
        torch.save(content, path, _use_new_zipfile_serialization=request.param)
        return path

    return write


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_tensors(save, kind):
    read = read_state_dict(save(kind(TENSORS)))
    assert read.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(read[name], tensor) and read[name].dtype == tensor.dtype


def test_state_dict_of_a_module(save):
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    read = read_state_dict(save(module.state_dict()))
    assert read.keys() == module.state_dict().keys()
    assert not any(tensor.requires_grad for tensor in read.values())


def test_code_is_not_run(save, tmp_path):
    path = save({"a": torch.zeros(1), "b": Code(tmp_path / "ran")})
    with pytest.raises(ValueError, match=r"weights.th contains a call of \S*system"):
        read_state_dict(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_bare_pickle(tmp_path, protocol):
    path = tmp_path / "weights.th"
    path.write_bytes(pickle.dumps(Code(tmp_path / "ran"), protocol))
    with pytest.raises(ValueError, match="weights.th is not") as error:
        read_state_dict(path)
    assert "weights_only" not in str(error.value)
    assert not (tmp_path / "ran").exists()


def test_whole_module(save):
    with pytest.raises(ValueError, match="call of torch.nn.modules.linear.Linear"):
        read_state_dict(save(torch.nn.Linear(2, 3)))


@pytest.mark.parametrize(
    "content, problem",
    [
        ([1, 2], "a list, expected the tensors of a network"),
        (torch.zeros(2), "a Tensor, expected the tensors of a network"),
        ({"a": 1, "b": "x"}, "a: a int, expected a tensor\n  b: a str, expected a tensor"),
        ({"a": torch.zeros(2, 2).to_sparse()}, "a: layout torch.sparse_coo on cpu"),
        (
            {"a": torch.zeros(1).expand(10**12)},
            r"a: shape \[1000000000000\], which is larger than its data",
        ),
        ({"a": torch.empty(10**12, device="meta")}, "a: layout torch.strided on meta"),
    ],
)
def test_no_tensors_of_a_network(save, content, problem):
    with pytest.raises(ValueError, match=problem):
        read_state_dict(save(content))


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls them a prototype
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2).to(torch.float8_e4m3fn),
        lambda: torch.quantize_per_tensor(torch.zeros(2), 1.0, 0, torch.qint8),
        lambda: torch.zeros(2, dtype=torch.complex64).conj(),
        lambda: torch.zeros(2, dtype=torch.complex64).conj().imag,
        nested,
    ],
    ids=["float8", "qint8", "conjugate", "negative", "nested"],
)
@pytest.mark.filterwarnings("ignore")
def test_types_of_tensors_that_no_elmo_has(save, make):
    try:
        path = save({"a": make()})
    except Exception as error:  # an older format may not have them
        pytest.skip(f"torch.save: {error}")
    try:
        read_state_dict(path)["a"].numpy()
    except ValueError as error:
        assert str(error).startswith(f"{path} ")


def test_shared_parameters(save):
    """A tensor under several names is read several times. A tensor under very many names is rejected."""
    shared = torch.randn(1 << 14)
    assert len(read_state_dict(save({f"n{i}": shared for i in range(4)}))) == 4
    # A name costs some bytes of the file, too.
    with pytest.raises(ValueError, match="the same tensors many times"):
        read_state_dict(save({f"n{i}": shared for i in range(1000)}))


def test_packed_parts(tmp_path):
    """torch would decompress such parts to any size."""
    plain, packed = tmp_path / "plain.th", tmp_path / "packed.th"
    torch.save({"a": torch.zeros(1 << 20)}, plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert packed.stat().st_size < 1 << 14
    with pytest.raises(ValueError, match="is compressed inside"):
        read_state_dict(packed)


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_state_dict(tmp_path / "nowhere")
    with pytest.raises(OSError):
        read_state_dict(tmp_path)
