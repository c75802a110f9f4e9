"""Raw text files, compressed or not, and their lines."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from .progress import reading_observer

_COMPRESSED = (".gz", ".xz", ".zst")
_READ_IN_DIRECTORIES = (
    *(kind + suffix for kind in (".txt", ".jsonl") for suffix in ("", *_COMPRESSED)),
    ".spacy",
)
_NOT_READ = (
    ".json", ".ndjson", ".conllu", ".parquet", ".tar", ".tgz", ".zip", ".7z", ".bz2",
)  # fmt: skip


def text_files(source: str, *, more: tuple[str, ...] = ()) -> list[Path]:
    """Return the files that a `raw_text` setting names, sorted.

    They are the file itself; the files of a directory that are called *.txt, *.jsonl (or either with .gz, .xz or .zst)
    or *.spacy; or all files that match a glob pattern.

    Args:
        more: suffixes of further kinds that the caller can read, compressed or not.

    Raises:
        FileNotFoundError: there are no such files.
        ValueError: the name of a file, given itself or by a pattern, is of a kind that cannot be read.
    """
    path = Path(source)
    suffixes = (
        *_READ_IN_DIRECTORIES,
        *(suffix + compressed for suffix in more for compressed in ("", *_COMPRESSED)),
    )
    if path.is_dir():
        names = ", ".join(f"*{suffix}" for suffix in suffixes)
        problem = f"no {names} in this directory; for files of other names, give a glob pattern"
        candidates = [
            file
            for file in path.iterdir()
            if file.name.lower().endswith(suffixes) and not file.name.startswith(".")
        ]
    else:
        problem = "no file, directory or matching pattern"
        candidates = [path] if path.is_file() else [*map(Path, glob.glob(source, recursive=True))]
    files = sorted(file for file in candidates if file.is_file())
    if not files:
        raise FileNotFoundError(f"No text at {source!r}: {problem}")
    for file in files:
        # "a.json.gz" is as little plain text as "a.json".
        unreadable = kind(file) in _NOT_READ and kind(file) not in more
        if unreadable or (kind(file) == ".spacy" and file.suffix in _COMPRESSED):
            raise ValueError(
                f"{file}: {''.join(file.suffixes[-2:])} is not read; give plain text or .jsonl (either may be"
                " compressed as .gz, .xz or .zst), or .spacy"
            )
    return files


def kind(file: Path) -> str:
    """Return the suffix of a file without that of its compression: ".jsonl" for "a.jsonl.gz"."""
    return (file.with_suffix("") if file.suffix in _COMPRESSED else file).suffix.lower()


def lines(file: Path, errors: str, *, remedy: str = "") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, each with its number, from 1, and its line ending.

    Args:
        errors: "strict" or "replace", for bytes that are not UTF-8.
        remedy: appended to the error message: what the user can do besides correcting the file.

    Raises:
        ValueError: a line is not UTF-8, or a compressed file is damaged; the message names file and line.
    """
    number = 0
    observer = reading_observer()
    try:
        with _open(file) as stream:
            for raw in stream:
                number += 1
                if observer is not None:
                    observer(len(raw))
                # The byte order mark that some Windows programs write would become part of the first word.
                raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
                yield number, raw.decode("utf8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}, line {number}: not UTF-8 ({error.reason} at byte {error.start} of the line)."
            f" Correct the file{remedy}"
        ) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{file}, after line {number}: damaged archive ({error})") from error


def _open(file: Path) -> AbstractContextManager[Iterable[bytes]]:
    if file.suffix in _COMPRESSED and not file.stat().st_size:
        raise EOFError(
            "empty: no program writes such an archive"
        )  # Python's gzip reads it as no text
    if file.suffix == ".gz":
        return gzip.open(file, "rb")
    if file.suffix == ".xz":
        return lzma.open(file, "rb")
    if file.suffix == ".zst":
        try:
            from .zst import ZstReader
        except ImportError as error:
            raise ValueError(f"{file}: .zst files need `pip install spacy-elmo[zst]`") from error
        return io.BufferedReader(ZstReader(file))
    return file.open("rb")
