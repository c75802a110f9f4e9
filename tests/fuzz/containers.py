"""Damage inside containers. Their checksums and lengths are corrected, so that a reader reaches the damaged content."""

import gzip
import io
import json
import lzma
import pickletools
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from random import Random
from typing import Any

import h5py
import numpy as np
import srsly
import zstandard

from spacy_elmo.converters.readers.tensorflow_table import _entries
from tests.converters import tensor_bundle
from tests.fuzz.bytes_and_values import (
    NUMBERS,
    TEXTS,
    Damage,
    damaged_bytes,
    damaged_json,
    damaged_text,
    damaged_value,
    with_length,
)


def damaged_safetensors(random: Random, data: bytes) -> bytes:
    """Damage the bytes, the header, or a JSON text inside the header."""
    if random.random() < 0.4:
        return damaged_bytes(random, data)
    size = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + size], data[8 + size :]
    if random.random() < 0.4:
        return with_length(damaged_json(random, header), rest)
    entries = json.loads(header)
    metadata = entries.get("__metadata__", {})
    if random.random() < 0.5 and metadata:
        key = random.choice(sorted(metadata))
        metadata[key] = damaged_json(random, metadata[key].encode()).decode("utf8", "replace")
    else:
        entries = damaged_value(random, entries)
    return with_length(json.dumps(entries).encode(), rest)


def damaged_npy(random: Random, data: bytes) -> bytes:
    """Damage the bytes, or the header, and correct its length."""
    if random.random() < 0.5:
        return damaged_bytes(random, data)
    size = int.from_bytes(data[8:10], "little")
    header = damaged_text(random, data[10 : 10 + size])
    if random.random() < 0.7:
        types = (b"<f4", b"<f8", b"<i8", b">f4", b"|O", b"<U9", b"<m8", b"|V0", b"<c8", b"<f2")
        header = data[10 : 10 + size].replace(b"<f4", random.choice(types))
        header = header.replace(b"<i8", random.choice(types)).replace(b"<i4", random.choice(types))
        shape = random.choice((b"(0,)", b"(-1,)", b"()", b"(1000000000000,)", b"(2, 2)", b"(1" * 9))
        start, end = header.find(b"("), header.find(b")")
        header = header[:start] + shape + header[end + 1 :] if random.random() < 0.5 else header
    return data[:8] + (len(header) & 0xFFFF).to_bytes(2, "little") + header + data[10 + size :]


def damaged_zip(random: Random, data: bytes, inner: Mapping[str, Damage]) -> bytes:
    """Damage the bytes, a member, or the list of members.

    Args:
        inner: damage of members by the ends of their names.
    """
    if random.random() < 0.3:
        return damaged_bytes(random, data)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(info.filename, file.read(info), info.compress_type) for info in file.infolist()]
    place = random.randrange(len(members))
    name, content, method = members[place]
    kind = random.randrange(10)
    if kind < 6:
        content = _inner(inner, name)(random, content)
    elif kind == 6:
        name = random.choice((*TEXTS, "a/" * random.choice((40, 1500)) + "b", name + "/"))
    elif kind == 7:
        method = random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    elif kind == 8:
        content = bytes(random.choice((0, 1 << 22)))
        method = zipfile.ZIP_DEFLATED
    members[place] = (name, content, method)
    if kind == 9:
        del members[place]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content, method in members:
            info = zipfile.ZipInfo(name.encode("utf8", "replace").decode()[:60_000])
            info.compress_type = method
            info.external_attr = random.choice((0, 0, 0, 0o120777 << 16, 0o100644 << 16))
            file.writestr(info, content)
    return stream.getvalue()


def damaged_tar_gz(random: Random, data: bytes, inner: Mapping[str, Damage]) -> bytes:
    """Damage the packed bytes, the bytes before packing, or a member; see `damaged_zip`."""
    kind = random.randrange(4)
    if kind == 0:
        return damaged_bytes(random, data)
    plain = gzip.decompress(data)
    if kind == 1:
        return gzip.compress(damaged_bytes(random, plain), 1, mtime=0)
    with tarfile.open(fileobj=io.BytesIO(plain)) as file:
        members = [(member, file.extractfile(member)) for member in file if member.isreg()]
        contents = [(member, content.read()) for member, content in members if content is not None]
    damaged = random.randrange(len(contents))
    blocks = []
    for number, (member, content) in enumerate(contents):
        if number == damaged and kind == 2:
            content = _inner(inner, member.name)(random, content)
            member.size = len(content)
        elif number == damaged:
            _damage_member(random, member)
        # Not by `addfile`, which refuses a wrong size.
        blocks += [member.tobuf(), content, bytes(-len(content) % tarfile.BLOCKSIZE)]
    return gzip.compress(b"".join([*blocks, bytes(2 * tarfile.BLOCKSIZE)]), 1, mtime=0)


def _damage_member(random: Random, member: tarfile.TarInfo) -> None:
    kind = random.randrange(3)
    if kind == 0:
        name = random.choice((*TEXTS, "a/" * random.choice((40, 1500)) + "b"))
        member.name = name.replace("\0", "").encode("utf8", "replace").decode()
    elif kind == 1:
        member.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE))
        member.linkname = "/etc/passwd"
    else:
        member.size = random.choice((0, 1, 1 << 33))


def _inner(inner: Mapping[str, Damage], name: str) -> Damage:
    return next((damage for end, damage in inner.items() if name.endswith(end)), damaged_bytes)


def damaged_pickle(random: Random, data: bytes) -> bytes:
    """Damage a pickle as bytes, or opcode by opcode: delete, repeat or exchange them, or change their arguments."""
    if random.random() < 0.3:
        return damaged_bytes(random, data)
    starts = [place for _, _, place in pickletools.genops(data) if place is not None]
    codes = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    place = random.randrange(len(codes))
    kind = random.randrange(5)
    if kind == 0:
        del codes[place]
    elif kind == 1:
        codes[place:place] = codes[place : place + random.choice((1, 2, 8))]
    elif kind == 2:
        other = random.randrange(len(codes))
        codes[place], codes[other] = codes[other], codes[place]
    elif kind == 3:
        codes[place] = random.choice(_OPCODES)
    else:
        numbers = [i for i, code in enumerate(codes) if code[:1] in b"KMJ"] or [place]
        number = random.choice([n for n in NUMBERS if isinstance(n, int) and abs(n) < 1 << 31])
        codes[random.choice(numbers)] = b"J" + number.to_bytes(4, "little", signed=True)
    return b"".join(codes)


def damaged_old_pickle(random: Random, data: bytes) -> bytes:
    """Damage a file of `torch.save` before PyTorch 1.6: one of its five pickles, or the numbers after them."""
    stream = io.BytesIO(data)
    pickles = []
    for _ in range(5):
        start = stream.tell()
        for _ in pickletools.genops(stream):
            pass
        pickles.append(data[start : stream.tell()])
    parts = [*pickles, data[stream.tell() :]]
    place = random.choice((0, 1, 2, 3, 3, 3, 3, 4, 5))
    damage = damaged_bytes if place == 5 else damaged_pickle
    parts[place] = damage(random, parts[place])
    return b"".join(parts)


_OPCODES = (
    b"N", b".", b"0", b"1", b"(", b")", b"}", b"]", b"t", b"R", b"b", b"Q", b"q\x00", b"h\x00", b"\x88", b"a", b"s",
    b"cos\nsystem\n", b"ctorch\nQInt8Storage\n", b"ctorch\nfloat8_e5m2\n", b"ctorch._utils\n_rebuild_parameter\n",
    b"ctorch._utils\n_rebuild_sparse_tensor\n", b"ctorch\nDoubleStorage\n", b"X\x03\x00\x00\x00cpu", b"\x85", b"\x86",
    b"ctorch._utils\n_rebuild_qtensor\n", b"ccollections\nOrderedDict\n", b"G\x7f\xf0\x00\x00\x00\x00\x00\x00",
)  # fmt: skip


def damaged_torch_zip(random: Random, data: bytes) -> bytes:
    """Damage a file of `torch.save`."""
    return damaged_zip(random, data, {"data.pkl": damaged_pickle})


def damaged_docbin(random: Random, data: bytes) -> bytes:
    """Damage a DocBin: its bytes, or the message before packing, as bytes or as a value."""
    kind = random.randrange(3)
    if kind == 0:
        return damaged_bytes(random, data)
    plain = zlib.decompress(data)
    if kind == 1:
        return zlib.compress(damaged_bytes(random, plain))
    message = srsly.msgpack_loads(plain)
    try:
        return zlib.compress(srsly.msgpack_dumps(damaged_value(random, message)))
    except (OverflowError, ValueError, TypeError):  # no number of msgpack
        return damaged_bytes(random, data)


_PACK: dict[str, Any] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


def packed(suffix: str, data: bytes) -> bytes:
    """Return data compressed as a file with this suffix."""
    return _PACK[suffix](data)


def damaged_table(random: Random, data: bytes) -> bytes:
    """Damage the index of a TensorFlow checkpoint: its bytes, or the keys and values of a table with correct
    checksums."""
    if random.random() < 0.4:
        return damaged_bytes(random, data)
    pairs = list(_entries(data).items())
    for _ in range(random.choice((1, 1, 3))):
        place = random.randrange(len(pairs))
        key, value = pairs[place]
        kind = random.randrange(6)
        if kind < 3:
            value = damaged_bytes(random, value)
        elif kind == 3:
            key = damaged_bytes(random, key)
        elif kind == 4:
            key += b"/" * random.choice((1, 65_000)) + b"x"
        else:
            field, number = random.randrange(1, 8), random.choice(NUMBERS)
            value += tensor_bundle.number_field(field, int(number) if number == number // 1 else 1)
        pairs[place] = (key, value)
    pairs = sorted(pairs) if random.random() < 0.8 else pairs
    return tensor_bundle.table(
        pairs,
        restart_interval=random.choice((16, 1, 1000)),
        per_block=random.choice((1000, 1, 7)),
        compression=random.choice((0, 0, 0, 1)),
    )


def damaged_hdf5(random: Random, data: bytes) -> bytes:
    """Damage an HDF5 file: its bytes, or one of its arrays, which is replaced by an array of another kind."""
    if random.random() < 0.5:
        return damaged_bytes(random, data)
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, node: names.append(name) if hasattr(node, "shape") else None)
        name = random.choice(names)
        array = file[name][()]
        if random.random() < 0.9:
            del file[name]
        else:
            name = random.choice(
                [text for text in TEXTS if text.strip("/\0 ") and "\0" not in text]
            )
            name = name.encode("utf8", "replace").decode()
        _HDF5[random.randrange(len(_HDF5))](random, file, name, array)
    return stream.getvalue()


def _retyped(random: Random, file: Any, name: str, array: Any) -> None:
    types = ("f2", "f8", ">f4", "i1", "u8", "?", "c8", "S3", "V4")
    file.create_dataset(name, shape=np.shape(array), dtype=random.choice(types))


def _reshaped(random: Random, file: Any, name: str, array: Any) -> None:
    shape = [*np.shape(array)]
    if shape:
        shape[random.randrange(len(shape))] = random.choice((0, 1, 3, 10_000, 1 << 40))
    file.create_dataset(name, shape=tuple(shape), dtype="f4", chunks=(1,) * len(shape) or None)


def _packed_array(random: Random, file: Any, name: str, array: Any) -> None:
    options = random.choice(
        ({"compression": "gzip"}, {"compression": "lzf"}, {"shuffle": True}, {"fletcher32": True},
         {"scaleoffset": 2}, {"maxshape": (None,) * max(1, np.ndim(array))})
    )  # fmt: skip
    file.create_dataset(name, data=np.atleast_1d(array), chunks=True, **options)


def _not_finite(random: Random, file: Any, name: str, array: Any) -> None:
    array = np.array(array, dtype="f4").copy()
    array.reshape(-1)[:1] = random.choice((np.nan, np.inf, 1e38, 0))
    file.create_dataset(name, data=array)


def _linked(random: Random, file: Any, name: str, array: Any) -> None:
    file[name] = random.choice(
        (h5py.SoftLink("/"), h5py.SoftLink("/nowhere"), h5py.ExternalLink("/etc/passwd", "/x"))
    )


def _nested(random: Random, file: Any, name: str, array: Any) -> None:
    file.create_group("/".join(["g"] * random.choice((2, 100, 3_000))))


def _texts(random: Random, file: Any, name: str, array: Any) -> None:
    file.create_dataset(name, data=["x" * random.choice((1, 10_000))] * 3)


_HDF5 = (_retyped, _reshaped, _packed_array, _not_finite, _linked, _nested, _texts)
