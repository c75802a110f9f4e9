"""TensorFlow's checkpoints without TensorFlow: files written by the description of the format, and damaged files."""

import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from spacy_elmo.converters.readers.tensorflow import Checkpoint, newest
from tests.converters import tensor_bundle
from tests.converters.tensor_bundle import float32

ARRAYS = {
    "lm/char_embed": float32(5, 3),
    "lm/char_embed/Adagrad": float32(5, 3, seed=1),
    "lm/CNN/W_cnn_0": float32(1, 2, 3, 4),
    "lm/CNN/b_cnn_0": float32(4),
    "global_step": np.array(1250, np.int64),
    "half": float32(7).astype(np.float16),
    "steps": np.arange(-3, 3, dtype=np.int32),
    "none": float32(0, 3),
}


@pytest.fixture
def prefix(tmp_path):
    return tensor_bundle.write(tmp_path / "model.ckpt-1250", ARRAYS)


def index_of(prefix):
    return prefix.with_name(f"{prefix.name}.index")


def data_of(prefix, shard=0, shards=1):
    return prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{shards:05}")


def assert_holds(prefix, arrays):
    checkpoint = Checkpoint(prefix)
    assert list(checkpoint.entries) == sorted(arrays, key=str.encode)
    for name, array in arrays.items():
        got = checkpoint.read(name)
        assert got.dtype == array.dtype and got.shape == array.shape
        assert got.tobytes() == array.tobytes()
        assert got.flags.owndata or got.base.flags.owndata
        assert got.flags.writeable


names = st.lists(
    st.text(st.sampled_from("ab/é_"), min_size=1, max_size=12), max_size=12, unique=True
)
arrays = of_numpy.arrays(
    st.sampled_from([np.float32, np.float16, np.int32, np.int64]),
    of_numpy.array_shapes(min_dims=0, min_side=0, max_side=4),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), names, st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(0, 5))
def test_every_layout(tmp_path, data, names, restart_interval, per_block, shards, padding):
    drawn = {name: data.draw(arrays) for name in names}
    prefix = tensor_bundle.write(
        tmp_path / "x", drawn, shards, padding,
        restart_interval=restart_interval, per_block=per_block,
    )  # fmt: skip
    assert_holds(prefix, drawn)
    files = [index_of(prefix), *(data_of(prefix, shard, shards) for shard in range(shards))]
    assert Checkpoint(prefix).files == files


def test_a_tensor_that_nobody_asks_for_is_not_read(prefix, tmp_path):
    """The file, type and checksum of a tensor that is not needed do not matter."""
    changed = {"steps": {"crc": 0}, "half": {"dtype": 7}, "none": {"shard": 1}}
    tensor_bundle.write(prefix, ARRAYS, changed=changed)
    checkpoint = Checkpoint(prefix)
    np.testing.assert_array_equal(checkpoint.read("lm/char_embed"), ARRAYS["lm/char_embed"])
    with pytest.raises(KeyError):
        checkpoint.read("lm/char_embe")


def test_large_numbers(tmp_path):
    """Offsets, sizes and key lengths may have more than one group of bits."""
    arrays = {"a" * 300: float32(40_000), "a" * 300 + "b" * 300: float32(20_001, 1)}
    # The checksum of this writer walks bit by bit: once is enough.
    assert_holds(tensor_bundle.write(tmp_path / "x", arrays, restart_interval=2), arrays)


def test_folder_whose_checkpoint_is_named(tmp_path):
    for step in (9, 10, 11):
        tensor_bundle.write(tmp_path / f"model.ckpt-{step}", ARRAYS)
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "/data/someone/run/model.ckpt-10"\n'
        'all_model_checkpoint_paths: "/data/someone/run/model.ckpt-9"\n'
    )
    assert newest(tmp_path) == tmp_path / "model.ckpt-10"
    (tmp_path / "checkpoint").write_text(r'model_checkpoint_path: "C:\\run\\model.ckpt-9"')
    assert newest(tmp_path) == tmp_path / "model.ckpt-9"


@pytest.mark.parametrize("named", ["model.ckpt-10", "../model.ckpt-9", "", 'x"\n"'])
def test_folder_of_one_checkpoint(prefix, named):
    """The content and the existence of the file `checkpoint` do not matter."""
    (prefix.parent / "checkpoint").write_text(f'model_checkpoint_path: "{named}"')
    assert newest(prefix.parent) == prefix
    (prefix.parent / "checkpoint").unlink()
    assert newest(prefix.parent) == prefix


def test_folder_of_several_checkpoints(prefix):
    tensor_bundle.write(prefix.with_name("model.ckpt-9"), ARRAYS)
    (prefix.parent / "checkpoint").unlink()
    with pytest.raises(ValueError) as error:
        newest(prefix.parent)
    for part in ("2 checkpoints", "\n  model.ckpt-1250.index\n  model.ckpt-9.index"):
        assert part in str(error.value)


def test_folder_without_a_checkpoint(tmp_path):
    with pytest.raises(ValueError, match=r"no file \*\.index"):
        newest(tmp_path)
    with pytest.raises(FileNotFoundError, match="model.ckpt-1.index"):
        Checkpoint(tmp_path / "model.ckpt-1")


def test_old_format(tmp_path):
    """A V1 checkpoint is a table too, but in one file without a suffix that contains everything."""
    (tmp_path / "model.ckpt-1").write_bytes(tensor_bundle.table([(b"", b"anything")]))
    with pytest.raises(ValueError, match=r"model.ckpt-1 is .* V1.*SaverDef.V2"):
        Checkpoint(tmp_path / "model.ckpt-1")


@pytest.mark.parametrize("of_table", [{}, {"per_block": 2, "restart_interval": 2}])
def test_no_flipped_byte_of_the_index_goes_unnoticed(tmp_path, of_table):
    """Only bytes outside all blocks, and the empty metaindex block, are not read."""
    prefix = tensor_bundle.write(tmp_path / "x", {"a/b": float32(2), "a/c": float32(3)}, **of_table)
    path, content = index_of(prefix), index_of(prefix).read_bytes()
    expected = Checkpoint(prefix).entries
    unnoticed = []
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        path.write_bytes(damaged)
        try:
            assert Checkpoint(prefix).entries == expected
            unnoticed.append(place)
        except ValueError as error:
            assert str(path) in str(error)
    metaindex = set(range(len(content) - 48 - 5 - 8 - 48, len(content) - 8))
    assert set(unnoticed) <= metaindex


def with_footer(content, *handles):
    footer = b"".join(handles).ljust(40, b"\0")[:40]
    return content + footer + struct.pack("<Q", 0xDB4775248B80FB57)


HUGE = b"\xff" * 9 + b"\x01"  # 2^64 - 1


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"", "does not end in the format's footer"),
        (b"\0" * 100, "does not end in the format's footer"),
        (with_footer(b"")[-20:], "does not end in the format's footer"),
        (with_footer(b"", b"\0\0", HUGE, b"\0"), "at byte 18446744073709551615 exceeds the file of 48"),
        (with_footer(b"", b"\0\0", b"\0", HUGE), "a block of 18446744073709551615 bytes at byte 0"),
        (with_footer(b"", b"\xff" * 20), "a number of 64 bits"),
        (with_footer(b"", b"\0\0", b"\xff" * 9 + b"\x02"), "a number of 64 bits"),
        (tensor_bundle.table([(b"", b"x")], compression=1), "is compressed, which is not supported"),
        (tensor_bundle.table([]), "without the header"),
        (tensor_bundle.table([(b"name", b"x")]), "without the header"),
        (tensor_bundle.table([(b"b", b"x"), (b"a", b"x")]), "b'a' comes after b'b'"),
        (tensor_bundle.table([(b"a", b"x"), (b"a", b"x")], per_block=1), "b'a' comes after b'a'"),
        (tensor_bundle.table([(b"a" * 70_000, b"x")]), "a key has 70,000 bytes, the limit is 1,024"),
    ],
)  # fmt: skip
def test_index_that_is_none(tmp_path, content, problem):
    (tmp_path / "x.index").write_bytes(content)
    with pytest.raises(ValueError) as error:
        Checkpoint(tmp_path / "x")
    assert problem in str(error.value)
    assert str(tmp_path / "x.index") in str(error.value)


def sealed_table(block):
    """Return a table whose first block has this content, with a correct checksum."""
    data = block + b"\0"
    content = data + struct.pack("<I", tensor_bundle.masked(tensor_bundle.crc32c(data)))
    handle = b"\0" + tensor_bundle.varint(len(block))
    index = tensor_bundle.block([(b"z", handle)], 1)
    sealed = index + b"\0"
    where = tensor_bundle.varint(len(content)) + tensor_bundle.varint(len(index))
    content += sealed + struct.pack("<I", tensor_bundle.masked(tensor_bundle.crc32c(sealed)))
    return with_footer(content, b"\0\0", where)


@pytest.mark.parametrize(
    "block, problem",
    [
        (b"", "a block of 0 bytes"),
        (b"\0\0\0\x01", "cannot have 16777216 restarts"),
        (b"\x05\x01\x00a" + bytes(8), "the entry before byte"),  # shares bytes with no predecessor
        (b"\x00\x09\x00a" + bytes(8), "the entry before byte"),  # its key ends beyond the block
        (b"\x00\x01" + HUGE + b"a" + bytes(8), "the entry before byte"),
        (b"\x00" + HUGE + HUGE + b"a" + bytes(8), "the entry before byte"),
        (b"\x80" + bytes(4), "the entry before byte"),  # the varint runs on into the restarts
    ],
)
def test_block_that_is_none(tmp_path, block, problem):
    (tmp_path / "x.index").write_bytes(sealed_table(block))
    with pytest.raises(ValueError, match=problem):
        Checkpoint(tmp_path / "x")


@pytest.mark.parametrize(
    "header, problem",
    [
        ({"endianness": 1}, "a big-endian machine"),
        ({"oldest_reader": 2}, "a reader of version 2 or newer"),
        ({"shards": 0}, "it claims 0 data files"),
        ({"shards": -1}, "it claims -1 data files"),
        ({"shards": 10**6}, "it claims 1000000 data files"),
    ],
)
def test_headers(tmp_path, header, problem):
    tensor_bundle.write(
        tmp_path / "x", ARRAYS, header=lambda shards: tensor_bundle.header(**header)
    )
    with pytest.raises(ValueError, match=problem) as error:
        Checkpoint(tmp_path / "x")
    assert str(tmp_path / "x.index") in str(error.value)


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"\x08", "a number of 64 bits"),
        (b"\x3a\x05ab", "field 7 should have 5 bytes, but only 2"),
        (b"\x35ab", "field 6 should have 4 bytes, but only 2"),
        (b"\x0b", "field 1 has the unknown kind 3"),
        (b"\x12\x02\x12\x05", "field 2 should have 5 bytes"),  # in the shape
        (b"\x3a" + HUGE, "field 7 should have 18446744073709551615 bytes"),
    ],
)
def test_entry_that_is_none(tmp_path, content, problem):
    table = tensor_bundle.table([(b"", tensor_bundle.header()), (b"name", content)])
    (tmp_path / "x.index").write_bytes(table)
    with pytest.raises(ValueError, match=problem):
        Checkpoint(tmp_path / "x")


SLICE = tensor_bundle.bytes_field(7, b"")


@pytest.mark.parametrize(
    "changed, problem",
    [
        ({"crc": 1}, "name does not match its checksum"),
        ({"dtype": 2}, "name has the type float64; supported are float32, float16, bfloat16, int32 and int64"),
        ({"dtype": 14}, r"name has the shape \[2, 3\] and the type uint16, but 24 bytes"),
        ({"shape": (1,) * 9}, "a tensor has 9 axes, the limit is 8"),
        ({"dtype": 7}, "name has the type string"),
        ({"dtype": 99}, "name has the type number 99"),
        ({"dtype": 9}, r"name has the shape \[2, 3\] and the type int64, but 24 bytes"),
        ({"more": SLICE}, "name is stored in several slices"),
        ({"shape": (2, 4)}, r"name has the shape \[2, 4\] and the type float32, but 24 bytes"),
        ({"shape": (2, -3)}, r"name has the shape \[2, -3\]"),
        ({"shape": (-2, -3)}, r"name has the shape \[-2, -3\]"),
        ({"shape": (1 << 62, 1 << 62)}, "name has the shape"),
        ({"size": 23}, "but 23 bytes"),
        ({"shape": (1 << 60,), "size": 1 << 62}, "name should be at bytes 0 to 4611686018427387904"),
        ({"offset": 1}, "24 bytes, but name should be at bytes 1 to 25"),
        ({"offset": -8}, "name should be at bytes -8 to 16"),
        ({"shard": 1}, "name is in data file 1, but there are only 1"),
        ({"shard": -1}, "name is in data file -1, but there are only 1"),
    ],
)  # fmt: skip
def test_tensor_that_is_none(tmp_path, changed, problem):
    tensor_bundle.write(tmp_path / "x", {"name": float32(2, 3)}, changed={"name": changed})
    with pytest.raises(ValueError, match=problem) as error:
        Checkpoint(tmp_path / "x").read("name")
    assert str(tmp_path / "x") in str(error.value)


def test_bfloat16(tmp_path):
    """Each number is the upper half of a float32."""
    bits = np.array([[0x3F80, 0xC040], [0x0000, 0x7F7F]], dtype=np.uint16)  # 1, -3, 0, the largest
    tensor_bundle.write(
        tmp_path / "x", {"name": bits.view(np.float16)}, changed={"name": {"dtype": 14}}
    )
    array = Checkpoint(tmp_path / "x").read("name")
    expected = torch.from_numpy(bits).view(torch.bfloat16).float().numpy()
    assert array.dtype == np.float32 and array[0].tolist() == [1, -3]
    np.testing.assert_array_equal(array, expected)


def test_keys_beyond_the_limits(tmp_path):
    """A long key with slashes would take quadratic time, and keys with a long common prefix gigabytes."""
    header, entry = tensor_bundle.header(), tensor_bundle.entry(float32(1))
    for keys, problem in [
        ([b"lm" + b"/" * 1023], "a key has 1,025 bytes, the limit is 1,024"),
        ([b"%06d" % i for i in range(100_001)], "more than 100,000 keys"),
    ]:
        table = tensor_bundle.table([(b"", header), *((key, entry) for key in keys)])
        (tmp_path / "x.index").write_bytes(table)
        with pytest.raises(ValueError, match=problem):
            Checkpoint(tmp_path / "x")


def test_tensors_in_the_same_place(tmp_path):
    """Many tensors of a small file must not share the same bytes."""
    first, second = float32(6), float32(3)
    for offset, shares in [(0, True), (20, True), (24, False)]:
        arrays, changed = {"a": first, "b": second}, {"b": {"offset": offset}}
        tensor_bundle.write(tmp_path / "x", arrays, changed=changed)
        if shares:
            with pytest.raises(ValueError, match="x.index is .*(a and b|b and a) overlap"):
                Checkpoint(tmp_path / "x")
        else:
            assert_holds(tmp_path / "x", arrays)
    changed = {"b": {"offset": 0, "shard": 1}}
    tensor_bundle.write(tmp_path / "x", arrays, shards=2, changed=changed)
    assert_holds(tmp_path / "x", arrays)


def test_damaged_and_truncated_data(prefix):
    path, content = data_of(prefix), data_of(prefix).read_bytes()
    checkpoint = Checkpoint(prefix)
    damaged = bytearray(content)
    damaged[3] ^= 0x80
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="data-00000-of-00001: lm/char_embed "):
        checkpoint.read("lm/char_embed")
    path.write_bytes(content[:-1])
    checkpoint.read("lm/char_embed")
    with pytest.raises(ValueError, match="steps should be at bytes"):
        checkpoint.read("steps")


def test_missing_data_file(tmp_path):
    prefix = tensor_bundle.write(tmp_path / "x", ARRAYS, shards=2)
    data_of(prefix, 1, 2).unlink()
    checkpoint = Checkpoint(prefix)
    checkpoint.read("lm/char_embed")
    with pytest.raises(FileNotFoundError, match="x.data-00001-of-00002"):
        checkpoint.read("lm/char_embed/Adagrad")
