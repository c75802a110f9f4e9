"""Arrays outside the heap: they equal other arrays, belong to one process, and free their memory at once."""

import copy
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.pipeline.encode import mapped_arrays
from spacy_elmo.pipeline.encode.mapped_arrays import mapped_copy, mapped_zeros


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (2, 3), (3, 100, 64)])
def test_arrays_like_any_other(shape, dtype):
    zeros = mapped_zeros(np, shape, dtype)
    assert zeros.shape == shape and zeros.dtype == dtype and not zeros.any()
    zeros += 1
    values = np.random.default_rng(0).normal(size=(*shape, 2)).astype(dtype)
    copied = mapped_copy(values[..., 1])
    np.testing.assert_array_equal(copied, values[..., 1])
    assert copied.dtype == dtype and copied.flags.c_contiguous and copied.flags.writeable
    for again in (copy.deepcopy(copied), pickle.loads(pickle.dumps(copied))):
        np.testing.assert_array_equal(again, copied)
    values += 1
    assert not copied.size or (copied != values[..., 1]).all()


def test_no_mapping_is_left(monkeypatch):
    """Linux allows 65,530 mappings in a process, a limit that is reached before memory is full."""

    def refuse(*args, **kwargs):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mapped_arrays.mmap, "mmap", refuse)
    copied = mapped_arrays.mapped_copy(np.ones((3, 50, 256), dtype="f"))
    assert copied.base is None and (copied == 1).all()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)
def test_a_forked_process_writes_into_its_own():
    zeros = mapped_zeros(np, (100, 100), "float32")

    def write():
        zeros[:] = 1

    child = multiprocessing.get_context("fork").Process(target=write)
    child.start()
    child.join()
    assert child.exitcode == 0 and not zeros.any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux counts its pages there")
def test_memory_goes_back_although_younger_things_stay():
    """Layers of one Doc have 150 kB; a heap cannot return memory that lies below a later object that is still in
    use."""

    def pages():
        return int(Path("/proc/self/statm").read_text().split()[1])

    before, stay = pages(), []
    arrays = []
    for _ in range(300):
        arrays.append(mapped_copy(np.ones((3, 50, 256), dtype="f")))
        stay.append(np.ones(100))
    most = pages()
    arrays.clear()
    assert most - before > 300 * 37
    assert pages() - before < 20 * 37
