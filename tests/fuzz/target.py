"""A loader under test: its valid files, the ways to damage them, and the outcome of loading damaged files."""

import dataclasses
import hashlib
import resource
import shutil
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from tests.fuzz.bytes_and_values import Damage, damaged_bytes

MAX_BYTES = 2 << 30
"""Memory that loading a damaged file of some kilobytes may take beyond that of the process before."""

EQUAL, REFUSED, OTHER = "equal", "refused", "other"
"""Outcomes without a defect. `OTHER`: other content, where a format has no digest, or with a warning."""

CHANGED, TRACEBACK, MEMORY = "changed", "traceback", "memory"
"""Defects: other content without a word; an error of another class, or that does not name the file; memory."""

CRASH, HANG = "crash", "hang"
"""Defects that end the process: a signal, and more than 20 seconds."""

DEFECTS = (CHANGED, TRACEBACK, MEMORY, CRASH, HANG)


@dataclass(frozen=True)
class Target:
    """A loader, with the files that it loads."""

    name: str
    make: Callable[[Path], object]
    """Writes valid files into a folder."""
    load: Callable[[Path], object]
    """Loads the files of a folder; the result contains everything that must not change without a word."""
    damage: Mapping[str, Damage]
    """Damage by path in the folder."""
    digests: bool = False
    """True: the format has digests, so other content than that of the valid files is a defect."""
    seal: Callable[[Path], object] | None = None
    """Makes the digests of damaged files right again, as someone would who means harm; may raise any error."""
    errors: tuple[type[Exception], ...] = (ValueError,)
    """Classes of a refusal. Files can be missing only where there are several: see `damage_files`."""
    names_path: bool = True
    """True: a refusal names a path below the folder."""


@dataclass(frozen=True)
class Outcome:
    """The results of loading damaged files."""

    kind: str
    detail: str = ""


def damage_files(target: Target, folder: Path, seed: int) -> None:
    """Damage one of the valid files in a folder, or sometimes remove or exchange it. The seed determines the damage."""
    random = Random(f"{target.name} {seed}")
    name = random.choice(sorted(target.damage))
    path = folder / name
    if len(target.damage) > 1 and random.random() < 0.03:
        _damage_presence(random, path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = path.read_bytes()
        try:
            damaged = target.damage[name](random, content)
        except Exception:  # the format cannot express what was drawn
            damaged = damaged_bytes(random, content)
        path.write_bytes(damaged)
    if target.seal is not None:
        try:
            target.seal(folder)
        except Exception:  # what cannot be parsed cannot be sealed either
            pass


def _damage_presence(random: Random, path: Path) -> None:
    kind = random.randrange(3)
    path.unlink()
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.touch()


def outcome(target: Target, folder: Path, expected: str) -> Outcome:
    """Load damaged files.

    Args:
        expected: `fingerprint` of the content of the valid files.
    """
    before = _most_bytes()
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            actual = fingerprint(target.load(folder))
        except Exception as error:
            result = _refusal(target, folder, error)
        else:
            if actual == expected:
                result = Outcome(EQUAL)
            elif target.digests and target.seal is None and not notes:
                result = Outcome(CHANGED, "other content without a word")
            else:
                result = Outcome(OTHER)
    if (grown := _most_bytes() - before) > MAX_BYTES:
        return Outcome(MEMORY, f"{grown / 1e9:.1f} GB")
    return result


def _refusal(target: Target, folder: Path, error: BaseException) -> Outcome:
    text = "".join(traceback.format_exception(error))
    # One boundary may turn these into a refusal, but the attempt shows that nothing had limited it.
    if any(sign in text for sign in ("MemoryError", "bad_alloc", "can't allocate memory")):
        return Outcome(MEMORY, text)
    # A file in the place of another, or none, is an error of the system, which names it.
    if not isinstance(error, (*target.errors, *_missing(target))):
        return Outcome(TRACEBACK, text)
    if target.names_path and str(folder) not in str(error):
        return Outcome(TRACEBACK, f"The message does not name the file.\n{text}")
    return Outcome(REFUSED)


def _missing(target: Target) -> Sequence[type[Exception]]:
    several = len(target.damage) > 1
    return (FileNotFoundError, IsADirectoryError, NotADirectoryError) if several else ()


def _most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Workplace:
    """A folder for one set of damaged files of a target after the other.

    Args:
        valid: folder of the valid files.
        folder: folder to create.
    """

    def __init__(self, target: Target, valid: Path, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._valid = {path.relative_to(valid): path.read_bytes() for path in _files(valid)}
        self._restore()
        self._expected = fingerprint(target.load(folder))

    def run(self, seed: int) -> Outcome:
        """Damage the valid files by a seed, and load them."""
        self._restore()
        damage_files(self._target, self._folder, seed)
        return outcome(self._target, self._folder, self._expected)

    def _restore(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        for name, content in self._valid.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def fingerprint(value: object) -> str:
    """Return a digest of a value: arrays and tensors by bits, shapes and types, containers by their content."""
    digest = hashlib.blake2b(digest_size=16)
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        value = value.detach().contiguous()
        digest.update(f"{value.dtype}{list(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value):
        _add(digest, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            _add(digest, key)
            _add(digest, value[key])
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        digest.update(f"[{len(value)}]".encode())
        for item in value:
            _add(digest, item)
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode("utf8", "surrogatepass"))
