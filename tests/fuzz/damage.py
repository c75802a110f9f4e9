"""Damage to bytes, JSON and safetensors files, drawn from a seeded generator."""

import copy
import json
from random import Random
from typing import Any

NUMBERS = (
    0, -1, 1, 2, 7, 255, 256, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63),
    10**30, 0.5, 1e-300, 1e308, float("nan"), float("inf"),
)  # fmt: skip
TEXTS = (
    "",
    "\n",
    "\0",
    "a" * 5000,
    "../../etc/passwd",
    "\ud800",
    "é" * 60,
    "null",
    "-1",
    "F16",
    "I64",
    "BF16",
)


def damaged_bytes(random: Random, data: bytes) -> bytes:
    """Change, insert, delete or cut off bytes, one to four times."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        # What describes a file lies mostly at its beginning or its end.
        place = random.randrange(max(1, min(len(content), random.choice((16, 512, 1 << 40)))))
        place = len(content) - 1 - place if random.random() < 0.25 else place
        kind = random.randrange(6)
        if kind < 2 and content:
            content[place] ^= 1 << random.randrange(8)
        elif kind == 2:
            size = random.choice((1, 2, 4, 8))
            number = random.choice([n for n in NUMBERS if isinstance(n, int)])
            content[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == 3:
            content[place:place] = random.randbytes(random.choice((1, 8, 300)))
        elif kind == 4:
            del content[place : place + random.choice((1, 4, 64))]
        else:
            del content[random.choice((place, random.randrange(len(content) + 1))) :]
    return bytes(content)


def damaged_json(random: Random, data: bytes) -> bytes:
    """Damage JSON as bytes, by deep nesting, or as a value."""
    kind = random.randrange(6)
    if kind == 0:
        return damaged_bytes(random, data)
    if kind == 1:
        nested = b"[" * random.choice((50, 100_000)) + b"0"
        place = random.randrange(len(data) + 1)
        return data[:place] + nested + data[place:]
    return json.dumps(damaged_value(random, json.loads(data))).encode()


def damaged_value(random: Random, value: Any) -> Any:
    """Return a copy of a JSON value in which one to three places are replaced, removed, renamed or wrapped."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = []
        containers = [value]
        for container in containers:
            if isinstance(container, dict | list):
                keys = list(container) if isinstance(container, dict) else range(len(container))
                places += [(container, key) for key in keys]
                containers += [container[key] for key in keys]
        if not places:
            return random.choice((*NUMBERS, *TEXTS, None, True, [], {}))
        parent, key = random.choice(places)
        kind = random.randrange(7)
        if kind < 3:
            parent[key] = random.choice((*NUMBERS, *TEXTS, None, True, [], {}, [[]]))
        elif kind == 3 and isinstance(parent[key], int | float):
            parent[key] = random.choice((parent[key] + 1, -parent[key], parent[key] * 2))
        elif kind == 4:
            parent[key] = random.choice(([parent[key]], {"a": parent[key]}, [parent[key]] * 3))
        elif kind == 5 and isinstance(parent, dict):
            parent[random.choice(TEXTS)] = parent.pop(key)
        else:
            del parent[key]
    return value


def damaged_safetensors(random: Random, data: bytes) -> bytes:
    """Damage the bytes, the header, or a JSON text inside the header."""
    if random.random() < 0.4:
        return damaged_bytes(random, data)
    size = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + size], data[8 + size :]
    if random.random() < 0.4:
        return with_length(damaged_json(random, header), rest)
    entries = json.loads(header)
    metadata = entries["__metadata__"]
    if random.random() < 0.5:
        key = random.choice(sorted(metadata))
        metadata[key] = damaged_bytes(random, metadata[key].encode()).decode("utf8", "replace")
    else:
        entries = damaged_value(random, entries)
    return with_length(json.dumps(entries).encode(), rest)


def with_length(header: bytes, data: bytes) -> bytes:
    """Return a safetensors file from a header and the bytes after it."""
    return len(header).to_bytes(8, "little") + header + data
