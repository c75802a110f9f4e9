"""The folder of a search index: settings, spans and vectors, with digests that detect damage."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ..files import atomic_file, atomic_folder, atomic_write
from ..text.documents import json_lines
from ..text.json_object import read_json_object

FORMAT = "spacy-elmo search 1"
_SETTINGS = "index.json"
_TYPES: dict[str, Any] = {"layer": int | None, "method": str, "width": int, "about": dict}


class IndexEntry(NamedTuple):
    """A Span in the index."""

    doc_id: str
    start: int
    end: int
    text: str


class DataFiles(NamedTuple):
    """Names of the files of an index beside its settings, which contain these names with the digests.

    A new index is written under the other pair of names, and replaces the old one when its settings do, in one step.
    """

    vectors: str
    spans: str


_FILES = DataFiles("vectors", "spans.jsonl")
_OTHER_FILES = DataFiles("vectors.1", "spans.1.jsonl")


@contextmanager
def written_index(
    folder: Path, settings: Mapping[str, Any], entries: Sequence[IndexEntry]
) -> Iterator[Path]:
    """Yield the path to which the vectors are to be written, and write the rest of an index after them.

    An earlier index in the folder is replaced when all files are complete.

    Raises:
        OSError: a file cannot be written.
    """
    if not folder.exists():
        with atomic_folder(folder) as new:
            with _written_vectors(new / _FILES.vectors, folder):
                yield new / _FILES.vectors
            srsly.write_jsonl(new / _FILES.spans, entries)
            srsly.write_json(new / _SETTINGS, _with_digests(new, _FILES, settings))
        return
    has_index = (folder / _SETTINGS).exists()
    old = _files(_digests(folder)) if has_index else _OTHER_FILES
    files = _FILES if old == _OTHER_FILES else _OTHER_FILES
    try:
        with atomic_file(folder / files.vectors) as partial:
            with _written_vectors(partial, folder):
                yield partial
        with atomic_file(folder / files.spans) as partial:
            srsly.write_jsonl(partial, entries)
        content = json.dumps(_with_digests(folder, files, settings))
        atomic_write(folder / _SETTINGS, content.encode())
    except BaseException:
        digests = _digests(folder)
        if digests is None or _files(digests) != files:  # the settings still name the old ones
            _remove(folder, files)
        raise
    _remove(folder, old)


@contextmanager
def _written_vectors(path: Path, folder: Path) -> Iterator[None]:
    """Name the file in errors of NumPy and usearch, which do not."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(f"{folder / path.name} cannot be written ({error})") from error
        raise


def _with_digests(folder: Path, files: DataFiles, settings: Mapping[str, Any]) -> dict[str, Any]:
    described = {"format": FORMAT, **settings}
    digests = {name: _file_digest(folder / name) for name in files}
    return {**described, "digests": {**digests, _SETTINGS: _settings_digest(described)}}


def _digests(folder: Path) -> Any:
    """Return the entry `digests` of the settings, unchecked; None: there is none."""
    try:
        return read_json_object(folder / _SETTINGS).get("digests")
    except (OSError, ValueError):
        return None


def _files(digests: Any) -> DataFiles:
    is_other = isinstance(digests, dict) and _OTHER_FILES.vectors in digests
    return _OTHER_FILES if is_other else _FILES


def _remove(folder: Path, files: DataFiles) -> None:
    for name in files:
        (folder / name).unlink(missing_ok=True)


def open_index(folder: Path) -> tuple[dict[str, Any], Path, list[IndexEntry]]:
    """Return the settings of an index, the path of its vectors, and its Spans, after comparing all files with their
    digests.

    Raises:
        OSError: the folder does not exist, or a file is missing.
        ValueError: it is not an index, or damaged.
    """
    settings = _load_settings(folder / _SETTINGS)
    _check_digests(folder, settings)
    files = _files(settings.get("digests"))
    entries = list(json_lines(folder / files.spans, _entry, "strict"))
    return settings, folder / files.vectors, entries


def _load_settings(path: Path) -> dict[str, Any]:
    try:
        settings = read_json_object(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"No index in {path.parent}: `spacy elmo search index` makes one"
        ) from error
    if settings.get("format") != FORMAT:
        raise ValueError(
            f"{path}: expected the format {FORMAT!r}; it is not an index of this version"
        )
    if unknown := settings.keys() - {"format", "digests", *_TYPES}:
        raise ValueError(
            f"{path}: unknown entry {min(unknown)!r}: the index is damaged, make it again"
        )
    for name, expected in _TYPES.items():
        if name not in settings or not isinstance(settings[name], expected):
            value = json.dumps(settings[name]) if name in settings else "missing"
            raise ValueError(f"{path}: {name} is {value:.100}: the index is damaged, make it again")
    return settings


def _check_digests(folder: Path, settings: Mapping[str, Any]) -> None:
    """Compare the files of an index with the digests in its settings.

    Raises:
        OSError: a file is missing.
        ValueError: a file has changed; or there are no digests for a graph, which must not be loaded unchecked.
    """
    digests = settings.get("digests")
    if digests is None:
        if settings["method"] == "hnsw":
            raise ValueError(
                f"{folder / _SETTINGS} has no digests (it was written by an earlier version), and a damaged graph"
                " crashes the process: make the index again"
            )
        warnings.warn(
            f"{folder / _SETTINGS} has no digests (it was written by an earlier version): damage to the index is not"
            " detected. Make it again to add them",
            stacklevel=4,
        )
        return
    described = {name: value for name, value in settings.items() if name != "digests"}
    expected = {_SETTINGS: _settings_digest(described)}
    expected |= {name: _file_digest(folder / name) for name in _files(digests)}
    for name, digest in expected.items():
        if not isinstance(digests, dict) or digests.get(name) != digest:
            raise ValueError(
                f"{folder / name} has changed since it was written: the index is damaged, make it again"
            )


def _file_digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _settings_digest(settings: Mapping[str, Any]) -> str:
    return hashlib.blake2b(
        json.dumps(settings, sort_keys=True).encode(), digest_size=16
    ).hexdigest()


def _entry(row: object) -> IndexEntry:
    if isinstance(row, list) and [type(part) for part in row] == [str, int, int, str]:
        return IndexEntry(*row)
    raise ValueError(
        "expected [name of a Doc, first token, token after the last, text], but got"
        f" {json.dumps(row):.100}: the index is damaged, make it again"
    )
