"""Raw text files, packed or not, and their lines."""

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

_PACKED = (".gz", ".xz", ".zst")
_READ_IN_DIRECTORIES = (
    *(kind + packed for kind in (".txt", ".jsonl") for packed in ("", *_PACKED)),
    ".spacy",
)
_NOT_READ = (
    ".json", ".ndjson", ".conllu", ".parquet", ".tar", ".tgz", ".zip", ".7z", ".bz2",
)  # fmt: skip


def text_files(source: str, *, more: tuple[str, ...] = ()) -> list[Path]:
    """The files of a `raw_text` setting, sorted.

    The file itself; those of a directory that are called *.txt, *.jsonl (or either with .gz, .xz or .zst) or *.spacy;
    or all that a glob pattern finds.

    Args:
        more: suffixes of further kinds that the caller reads, packed or not.

    Raises:
        FileNotFoundError: there are none.
        ValueError: a file that was asked for, itself or by a pattern, is of a kind that is not read, by its name.
    """
    path = Path(source)
    more_read = tuple(suffix + packed for suffix in more for packed in ("", *_PACKED))
    read = (*_READ_IN_DIRECTORIES, *more_read)
    if path.is_dir():
        names = ", ".join(f"*{suffix}" for suffix in read)
        nothing = f"no {names} in this directory; for files of other names, give a glob pattern"
        found = [f for f in path.iterdir() if f.name.lower().endswith(read)]
    else:
        nothing = "no file, directory or matching pattern"
        found = [path] if path.is_file() else [*map(Path, glob.glob(source, recursive=True))]
    files = sorted(file for file in found if file.is_file())
    if path.is_dir():
        files = [file for file in files if not file.name.startswith(".")]
    if not files:
        raise FileNotFoundError(f"No text at {source!r}: {nothing}")
    for file in files:
        # "a.json.gz" is as little plain text as "a.json".
        unread = kind(file) in _NOT_READ and kind(file) not in more
        if unread or (kind(file) == ".spacy" and file.suffix in _PACKED):
            raise ValueError(
                f"{file}: {''.join(file.suffixes[-2:])} is not read; give plain text or .jsonl (either may be packed as"
                " .gz, .xz or .zst), or .spacy"
            )
    return files


def kind(file: Path) -> str:
    """The suffix of a file without that of its packing: ".jsonl" of "a.jsonl.gz"."""
    return (file.with_suffix("") if file.suffix in _PACKED else file).suffix.lower()


def lines(file: Path, errors: str, *, remedy: str = "") -> Iterator[tuple[int, str]]:
    """(number from 1, line) of a text file, with the line's end.

    Args:
        errors: "strict" or "replace", for bytes that are not UTF-8.
        remedy: what the caller's user can do besides mending the file.

    Raises:
        ValueError: naming file and line of such bytes, or a damaged archive.
    """
    number = 0
    try:
        with _open(file) as stream:
            for raw in stream:
                number += 1
                # The mark that some Windows programs put first would stick to the first word.
                raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
                yield number, raw.decode("utf8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}, line {number}: not UTF-8 ({error.reason} at byte {error.start} of the line)."
            f" Mend the file{remedy}"
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
