"""Files of NumPy: arrays of the known type, or one error, and never a crash."""

import numpy as np
import pytest

from spacy_elmo.npy_file import read_npy


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3), (0, 3), ()])
def test_round_trip(tmp_path, shape, mapped):
    array = np.random.default_rng(0).standard_normal(shape).astype("float32")
    np.save(tmp_path / "a.npy", array)
    loaded = read_npy(tmp_path / "a.npy", "float32", len(shape), mapped=mapped)
    assert loaded.dtype == array.dtype and loaded.shape == shape
    assert np.array_equal(loaded, array)


def with_header(path, header):
    header = header.ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24))


def test_a_header_of_4_gb(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x02\x00" + b"\xff" * 4 + bytes(100))
    with pytest.raises(ValueError, match="a.npy .*version"):
        read_npy(tmp_path / "a.npy", "float32")


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|V0', 'fortran_order': False, 'shape': (-1,)}",  # mapping it divides by zero
        b"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': '<f4', 'fortran_order': True, 'shape': (6,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1e30,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}" % 10**50,
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': '<f4', 'shape': (6,",
        b"(" * 115,
    ],
)
def test_another_header(tmp_path, header, mapped):
    with_header(tmp_path / "a.npy", header)
    with pytest.raises(ValueError, match="a.npy"):
        read_npy(tmp_path / "a.npy", "float32", mapped=mapped)
