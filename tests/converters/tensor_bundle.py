"""A writer of TensorFlow's checkpoints by the description of the format, without code of the package."""

import struct

import numpy as np

DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "float16": 19}


def crc32c(data):
    """Compute the checksum bit by bit, as in RFC 3720."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(checksum):
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % (1 << 32)


def varint(number):
    number %= 1 << 64
    groups = []
    while number >= 128:
        groups.append(number % 128 + 128)
        number //= 128
    return bytes([*groups, number])


def number_field(field, number):
    return varint(field << 3) + varint(number) if number else b""


def bytes_field(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def header(shards=1, endianness=0, producer=1, oldest_reader=0):
    version = number_field(1, producer) + number_field(2, oldest_reader)
    return number_field(1, shards) + number_field(2, endianness) + bytes_field(3, version)


def entry(array, shard=0, offset=0, size=None, crc=None, dtype=None, shape=None, more=b""):
    """Return a BundleEntryProto. Arguments replace the correct values."""
    content = array.tobytes()
    dims = [bytes_field(2, number_field(1, n)) for n in (array.shape if shape is None else shape)]
    crc = masked(crc32c(content)) if crc is None else crc
    return b"".join(
        [
            number_field(1, DTYPES[array.dtype.name] if dtype is None else dtype),
            bytes_field(2, b"".join(dims)),
            number_field(3, shard),
            number_field(4, offset),
            number_field(5, len(content) if size is None else size),
            varint(6 << 3 | 5) + struct.pack("<I", crc),
            more,
        ]
    )


def block(pairs, restart_interval):
    """Return the content of a block. Between two restarts, a key is stored as its difference from the previous key."""
    content, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(pairs):
        shared = 0
        if i % restart_interval == 0:
            restarts.append(len(content))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value))
        content += key[shared:] + value
        last = key
    restarts = restarts or [0]
    return content + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def table(pairs, restart_interval=16, per_block=1000, compression=0):
    """Return a table file of sorted pairs of bytes."""
    content = b""

    def append(data):
        nonlocal content
        handle = varint(len(content)) + varint(len(data))
        data += bytes([compression])
        content += data + struct.pack("<I", masked(crc32c(data)))
        return handle

    index = []
    for start in range(0, len(pairs), per_block):
        part = pairs[start : start + per_block]
        index.append((part[-1][0], append(block(part, restart_interval))))
    metaindex = append(block([], restart_interval))
    footer = metaindex + append(block(index, 1))
    return content + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def write(prefix, arrays, shards=1, padding=0, changed=None, header=header, **of_table):
    """Write the files of a checkpoint.

    Args:
        arrays: arrays by name; they are written to the data files in turn.
        padding: bytes between tensors.
        changed: for some names, keywords of `entry`.
        header, of_table: other headers, and the keywords of `table`.
    """
    data, entries = [b""] * shards, {}
    for i, (name, array) in enumerate(arrays.items()):
        shard = i % shards
        where = {"shard": shard, "offset": len(data[shard])}
        entries[name.encode()] = entry(array, **where | (changed or {}).get(name, {}))
        data[shard] += array.tobytes() + bytes(padding)
    pairs = [(b"", header(shards)), *sorted(entries.items())]
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(pairs, **of_table))
    for shard, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{shards:05}").write_bytes(content)
    (prefix.parent / "checkpoint").write_text(
        f'model_checkpoint_path: "{prefix.name}"\nall_model_checkpoint_paths: "{prefix.name}"\n',
        "utf8",
    )
    return prefix


def float32(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
