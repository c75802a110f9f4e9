"""The checksum is compared with the examples of the standard and with its definition, bit by bit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_elmo.converters.readers import crc32c as module
from spacy_elmo.converters.readers.crc32c import crc32c, masked
from tests.converters import tensor_bundle


@pytest.mark.parametrize(
    "data, expected",
    [
        # RFC 3720, appendix B.4, where the bytes stand in the order of the wire.
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        # The catalogue's check value, and that of nothing.
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_examples_of_the_standard(data, expected):
    assert crc32c(data) == expected


@given(st.binary(max_size=300))
@example(b"\0")
@example(b"abc")
def test_equals_its_definition(data):
    assert crc32c(data) == tensor_bundle.crc32c(data)
    assert masked(crc32c(data)) == tensor_bundle.masked(tensor_bundle.crc32c(data))


@pytest.mark.parametrize("size", [63, 64, 65, 128, 131, 1000])
def test_blocks_make_no_difference(monkeypatch, size):
    data = np.random.default_rng(0).bytes(size)
    monkeypatch.setattr(module, "_BYTES_PER_BLOCK", 64)
    assert crc32c(data) == tensor_bundle.crc32c(data)


def test_array_of_any_shape():
    array = tensor_bundle.float32(3, 5)
    assert crc32c(array) == tensor_bundle.crc32c(array.tobytes())
    assert crc32c(array[:0]) == 0
