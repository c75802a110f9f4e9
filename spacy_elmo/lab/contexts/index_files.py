"""Reader and writer of the folder of an index. Digests in the settings file detect damaged files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...digest import check_digests, with_digests
from ...files import atomic_file, atomic_folder, atomic_write, remove_partial, temporary_folder
from ...text.json_object import read_json_object

_SETTINGS = "index.json"
_FORMAT = re.compile(rb'"format"\s*:\s*"spacy-elmo occurrences ')


class IndexFormat(NamedTuple):
    """File format of one type of index, such as `OccurrenceIndex`."""

    name: str
    """Name and version of the format, which the settings file contains."""
    command: str
    """Command that creates an index in this format, for error messages."""
    files: tuple[str, ...]
    """Names of all files in the folder of an index, except the settings file."""
    types: Mapping[str, Any]
    """Mapping from the name of each setting to its type."""


@contextmanager
def written_index(folder: Path, kind: IndexFormat, settings: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a temporary folder for the files of an index. When the `with` block ends, move the files to
    `folder`.

    An earlier index in `folder`, in any format, is replaced in one step when all new files are complete. To
    make this possible, each file has two possible names (see `_other_name`). The new files get the names that
    are not in use. Then the new settings file, which contains the new names, replaces the old settings file.

    Args:
        kind: format of the index.
        settings: settings to store, in JSON types.

    Raises:
        FileExistsError: the folder contains no index, but other files with the names of an index.
        OSError: a file cannot be written.
    """
    described = {"format": kind.name, **settings}
    if not folder.exists():
        with atomic_folder(folder) as new:
            with _named_errors(folder):
                yield new
            path = new / _SETTINGS
            # Not with srsly, which rounds numbers, so that they would no longer fit their digest.
            path.write_bytes(json.dumps(with_digests(described, path, kind.files)).encode())
        return
    if is_index(folder):
        old = _present_files(folder, kind)
    elif taken := [name for name in (_SETTINGS, *kind.files) if (folder / name).exists()]:
        raise FileExistsError(
            f"{folder} contains {', '.join(taken)}, but no index. Delete these files, or choose another folder"
        )
    else:
        old = set()
    names = tuple(map(_other_name, kind.files)) if old.intersection(kind.files) else kind.files
    try:
        for name in (_SETTINGS, *kind.files, *map(_other_name, kind.files)):
            remove_partial(folder, name)
        with temporary_folder(folder / _SETTINGS) as partial:
            with _named_errors(folder):
                yield partial
            for file, name in zip(kind.files, names, strict=True):
                with atomic_file(folder / name) as target:
                    (partial / file).replace(target)
        path = folder / _SETTINGS
        atomic_write(path, json.dumps(with_digests(described, path, names)).encode())
    except BaseException:
        # If the error came after the new settings were written, keep the new files.
        if not is_index(folder) or _present_files(folder, kind) != set(names):
            _remove(folder, names)
        raise
    _remove(folder, old)


@contextmanager
def _named_errors(folder: Path) -> Iterator[None]:
    """In the `with` block, add the name of the folder to errors without a file name, such as errors of
    NumPy."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(f"Cannot write {folder} ({error})") from error
        error.filename = error.filename or str(folder)
        raise


def _other_name(name: str) -> str:
    """Return the second possible name of an index file, such as `spans.1.jsonl` for `spans.jsonl`."""
    return f"{Path(name).stem}.1{Path(name).suffix}"


def _names(kind: IndexFormat, digests: Any) -> tuple[str, ...]:
    """Return the current file names of an index: `kind.files`, or the names that `_other_name` returns.
    `digests` is a dict in the settings with the current names as keys."""
    other = tuple(map(_other_name, kind.files))
    return other if isinstance(digests, dict) and other[0] in digests else kind.files


def _present_files(folder: Path, kind: IndexFormat) -> set[str]:
    """Return the file names in the settings of an index. If the settings are damaged, return `kind.files`."""
    try:
        digests = read_json_object(folder / _SETTINGS)["digests"]
        # Damaged settings could name files in other folders. These must not be removed.
        return {name for name in digests if Path(name).name == name} - {_SETTINGS}
    except (OSError, ValueError, KeyError, TypeError):
        return set(kind.files)


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def open_index(folder: Path, kind: IndexFormat) -> tuple[dict[str, Any], dict[str, Path]]:
    """Check the digests of an index, and return the settings and the paths of the files.

    Args:
        kind: expected format of the index.

    Returns:
        The settings, and a dict that maps each file name in `kind.files` to the path of the file.

    Raises:
        OSError: the folder does not exist, or a file is missing.
        ValueError: the folder is not an index in the expected format, or the index is damaged.
    """
    settings = _load_settings(folder / _SETTINGS, kind)
    names = _names(kind, settings.get("digests"))
    try:
        check_digests(settings, folder / _SETTINGS, names)
    except ValueError as error:
        raise ValueError(f"{error}. The index is damaged. Make it again") from error
    return settings, {file: folder / name for file, name in zip(kind.files, names, strict=True)}


def is_index(folder: Path) -> bool:
    """Return True if a folder contains an index in any format. A damaged settings file counts if it still
    names the format."""
    try:
        return bool(_FORMAT.search((folder / _SETTINGS).read_bytes()))
    except OSError:
        return False


def _load_settings(path: Path, kind: IndexFormat) -> dict[str, Any]:
    try:
        settings = read_json_object(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"There is no index in {path.parent}. Make one with {kind.command}"
        ) from error
    if settings.get("format") != kind.name:
        raise ValueError(
            f"{path}: expected the format {kind.name!r}, but got {json.dumps(settings.get('format')):.100}. Make the"
            f" index with {kind.command} of this version"
        )
    if unknown := settings.keys() - {"format", "digests", *kind.types}:
        raise ValueError(
            f"{path} has the unknown entry {min(unknown)!r}. The index is damaged. Make it again"
        )
    for name, expected in kind.types.items():
        # true and false are whole numbers in Python, but not valid for any setting.
        if not isinstance(settings.get(name, ...), expected) or isinstance(settings[name], bool):
            value = json.dumps(settings[name]) if name in settings else "missing"
            raise ValueError(f"{path}: {name} is {value:.100}. The index is damaged. Make it again")
    return settings
