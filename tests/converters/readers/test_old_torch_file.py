"""Files of PyTorch before 1.6: their storages are no larger than the file, and finding out takes no memory."""

import pickle
import resource

import pytest
import torch

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
    with pytest.raises(ValueError, match=r"weights.pkl: 2,147,483,650 numbers in a file of 28"):
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
    with pytest.raises(ValueError, match="weights.pkl: "):
        read_state_dict(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
