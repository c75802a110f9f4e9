"""Damage to bytes, to text, and to values of JSON types, drawn from a seeded generator."""

import copy
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

Damage = Callable[[Random, bytes], bytes]
"""A function that returns the damaged content of a file."""

NUMBERS = (
    0, -1, 1, 2, 3, 7, 127, 128, 255, 256, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1,
    1 << 63, (1 << 64) - 1, -(1 << 31), -(1 << 63), 10**30, 10**400, 0.0, -0.0, 0.5, 1e-300, 1e30, 1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "\0", "a" * 5000, "../../etc/passwd", "/", "\x1b[2J\x1b]0;x\x07", "\u202e", "\ud800", "\ufeff",
    "é" * 60, "鳥", "🙂", "%s%n", "{}", "null", "1e999", "-1", "__class__", "float8_e4m3fn", "F16", "I64", "BF16",
)  # fmt: skip


def damaged_bytes(random: Random, data: bytes) -> bytes:
    """Change, insert, delete, repeat or cut off bytes, one to four times."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        # What describes a file lies mostly at its beginning or its end.
        span = random.choice((16, 512, 1 << 40))
        place = random.randrange(max(1, min(len(content), span)))
        place = len(content) - 1 - place if random.random() < 0.25 else place
        kind = random.randrange(9)
        if kind < 3 and content:
            content[place] ^= 1 << random.randrange(8)
        elif kind == 3 and content:
            content[place] = random.randrange(256)
        elif kind == 4:
            number = random.choice([n for n in NUMBERS if isinstance(n, int)])
            size, order = random.choice((1, 2, 4, 8)), random.choice(("little", "big"))
            content[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, order)
        elif kind == 5:
            content[place:place] = random.randbytes(random.choice((1, 8, 300)))
        elif kind == 6:
            del content[place : place + random.choice((1, 4, 64))]
        elif kind == 7:
            # Not the whole: two files in one are a valid file of several formats.
            size = min(random.choice((1, 8, 64, 4096)), len(content) // 2)
            content[place:place] = content[place : place + size] * random.choice((1, 3))
        else:
            del content[random.choice((place, random.randrange(len(content) + 1))) :]
    return bytes(content)


def damaged_text(random: Random, data: bytes) -> bytes:
    """Damage lines: repeat, delete, exchange or extend them."""
    if random.random() < 0.3:
        return damaged_bytes(random, data)
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        lines[place:place] = lines[place : place + random.randrange(5)] * random.choice((1, 50))
    elif kind == 1:
        del lines[place]
    elif kind == 2:
        random.shuffle(lines)
    elif kind == 3:
        lines[place] += random.choice(TEXTS).encode("utf8", "surrogatepass")
    elif kind == 4:
        words = lines[place].split() or [b""]
        words[random.randrange(len(words))] = _text_of(random, random.choice(NUMBERS))
        lines[place] = b" ".join(words)
    else:
        lines[place] = random.choice((b"\xff\xfe", b"\xc3", b"\t" * 20, b"a" * 100_000, b"\r"))
    return b"\n".join(lines)


def damaged_json(random: Random, data: bytes) -> bytes:
    """Damage JSON as bytes, as a value, or by what only its text can contain."""
    kind = random.randrange(8)
    if kind < 2:
        return damaged_bytes(random, data)
    if kind == 2:
        depth = random.choice((50, 1_000, 100_000))
        opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        nested = opening * depth + b"0" + closing * random.choice((0, depth))
        place = random.randrange(len(data) + 1)
        return random.choice((nested, data[:place] + nested + data[place:]))
    if kind == 3:  # a number or a text in place of one of the digits
        digits = [place for place, byte in enumerate(data) if 48 <= byte < 58] or [0]
        place = random.choice(digits)
        return data[:place] + _text_of(random, random.choice(NUMBERS)) + data[place + 1 :]
    try:
        value = json.loads(data)
    except ValueError:
        return damaged_text(random, data)  # a text among the JSON of a header
    return json.dumps(damaged_value(random, value)).encode()


def damaged_value(random: Random, value: Any) -> Any:
    """Return a copy of a value with one to three of its places replaced, removed, repeated, renamed or wrapped."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return random.choice((*NUMBERS, *TEXTS, None, True, [], {}))
        parent, key = random.choice(places)
        kind = random.randrange(10)
        if kind < 5:
            parent[key] = _other(random, parent[key])
        elif kind == 5:
            del parent[key]
        elif kind == 6:
            parent[key] = random.choice(([parent[key]], {"a": parent[key]}, [parent[key]] * 3))
        elif kind == 7:
            other, other_key = random.choice(places)
            if _has(parent, key) and _has(other, other_key):
                parent[key], other[other_key] = (
                    copy.deepcopy(other[other_key]),
                    copy.deepcopy(parent[key]),
                )
        elif kind == 8 and isinstance(parent, dict):
            parent[random.choice(TEXTS)] = parent.pop(key)
        elif isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
    return value


def _other(random: Random, value: Any) -> Any:
    """Return another value, of the same type or of any type."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice((None, True, False, [], {}, [[]], "x", 1))
    if isinstance(value, bool) and kind == 1:
        return not value
    if isinstance(value, int | float) and kind < 3:
        return random.choice((value + 1, value - 1, -value, value * 2, value + 0.5, str(value)))
    if isinstance(value, str) and value and kind < 3:
        place = random.randrange(len(value))
        return value[:place] + random.choice(TEXTS) + value[place + random.randrange(2) :]
    return random.choice((*NUMBERS, *TEXTS))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value inside a value."""
    places: list[tuple[Any, Any]] = []
    containers = [value]
    for container in containers:
        if isinstance(container, dict | list):
            keys = list(container) if isinstance(container, dict) else range(len(container))
            places += [(container, key) for key in keys]
            containers += [container[key] for key in keys]
    return places


def _has(container: Any, key: Any) -> bool:
    return key in container if isinstance(container, dict) else key < len(container)


def _text_of(random: Random, number: float) -> bytes:
    return random.choice((str(number), json.dumps(number), f'"{number}"')).encode()


def with_length(header: bytes, data: bytes) -> bytes:
    """Return a safetensors file from a header and the bytes after it."""
    return struct.pack("<Q", len(header)) + header + data
