"""Raw text files to documents of lines."""

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

LINES_PER_DOCUMENT = 100
"""A document ends here at the latest. Texts of one sentence per line often have no blank line (1B Word): this way
they too can be held out in parts, and a document fits into memory however long its file is."""

_PACKED = (".gz", ".xz", ".zst")
_READ_IN_DIRECTORIES = (".txt", *(f".txt{suffix}" for suffix in _PACKED))
_NO_PLAIN_TEXT = (
    ".json", ".jsonl", ".ndjson", ".spacy", ".conllu", ".parquet", ".tar", ".tgz", ".zip", ".7z", ".bz2",
)  # fmt: skip


def text_files(source: str) -> list[Path]:
    """The files of a `raw_text` setting, sorted.

    The file itself; those of a directory that are called *.txt, *.txt.gz, *.txt.xz or *.txt.zst; or all that a glob
    pattern finds.

    Raises:
        FileNotFoundError: there are none.
        ValueError: a file that was asked for, itself or by a pattern, is no plain text by its name.
    """
    path = Path(source)
    if path.is_dir():
        names = ", ".join(f"*{suffix}" for suffix in _READ_IN_DIRECTORIES)
        nothing = f"no {names} in this directory; for files of other names, give a glob pattern"
        found = [f for f in path.iterdir() if f.name.lower().endswith(_READ_IN_DIRECTORIES)]
    else:
        nothing = "no file, directory or matching pattern"
        found = [path] if path.is_file() else [*map(Path, glob.glob(source, recursive=True))]
    files = sorted(file for file in found if file.is_file())
    if path.is_dir():
        files = [file for file in files if not file.name.startswith(".")]
    if not files:
        raise FileNotFoundError(f"No text at {source!r}: {nothing}")
    for file in files:
        _check_name(file)
    return files


def _check_name(file: Path) -> None:
    # "a.jsonl.gz" is as little plain text as "a.jsonl".
    unpacked = file.with_suffix("") if file.suffix in _PACKED else file
    if unpacked.suffix.lower() in _NO_PLAIN_TEXT:
        raise ValueError(
            f"{file}: {unpacked.suffix} is not read yet; give plain text, or plain text packed as .gz, .xz or .zst"
        )


def documents(files: list[Path], errors: str) -> Iterator[list[str]]:
    """Documents, as lists of non-empty lines. A blank line, the end of a file and the hundredth line end a document.

    Args:
        errors: "strict" or "replace", for bytes that are not UTF-8.

    Raises:
        ValueError: naming file and line of such bytes, or a damaged archive.
    """
    for file in files:
        lines: list[str] = []
        for line in _lines(file, errors):
            if text := line.strip():
                lines.append(text)
            if lines and (not text or len(lines) == LINES_PER_DOCUMENT):
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
                # The mark that some Windows programs put first would stick to the first word.
                yield (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).decode(
                    "utf8", errors
                )
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}, line {number}: not UTF-8 ({error.reason} at byte {error.start} of the line)."
            " Mend the file, or set prepare.encoding_errors to replace"
        ) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{file}, after line {number}: damaged archive ({error})") from error


def _open(file: Path) -> AbstractContextManager[Iterable[bytes]]:
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
