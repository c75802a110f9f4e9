"""Raw text files to documents of lines."""

from __future__ import annotations

import glob
import gzip
import io
import lzma
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path


def text_files(source: str) -> list[Path]:
    """The files of a `raw_text` setting, sorted: the file itself, those of a directory, or what a glob pattern finds.

    Raises:
        FileNotFoundError: there are none.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(source, recursive=True))
    files = sorted(file for file in found if file.is_file() and not file.name.startswith("."))
    if not files:
        kind = "an empty directory" if path.is_dir() else "no file, directory or matching pattern"
        raise FileNotFoundError(f"No text at {source!r}: {kind}")
    return files


def documents(files: list[Path], errors: str) -> Iterator[list[str]]:
    """Documents, as lists of non-empty lines. A blank line and the end of a file end a document.

    Args:
        errors: "strict" or "replace", for bytes that are not UTF-8.

    Raises:
        ValueError: naming file and line of such bytes, or a damaged archive.
    """
    for file in files:
        lines: list[str] = []
        for line in _lines(file, errors):
            if line.strip():
                lines.append(line.strip())
            elif lines:
                yield lines
                lines = []
        if lines:
            yield lines


def _lines(file: Path, errors: str) -> Iterator[str]:
    number = 0
    try:
        with _open(file) as stream:
            for raw in stream:
                number += 1
                yield raw.decode("utf8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}, line {number}: not UTF-8 ({error.reason} at byte {error.start} of the line)."
            " Mend the file, or set prepare.encoding_errors to replace"
        ) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{file}, after line {number}: damaged archive ({error})") from error


def _open(file: Path) -> AbstractContextManager[Iterable[bytes]]:
    if file.suffix == ".gz":
        return gzip.open(file, "rb")
    if file.suffix == ".xz":
        return lzma.open(file, "rb")
    if file.suffix == ".zst":
        try:
            import zstandard
        except ImportError as error:
            raise ValueError(f"{file}: .zst files need `pip install spacy-elmo[zst]`") from error
        return io.BufferedReader(zstandard.open(file, "rb"))
    return file.open("rb")
