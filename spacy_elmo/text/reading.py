"""Functions that find the text files of a corpus, and read the lines of plain or compressed files. A progress bar
can observe the reading."""

from __future__ import annotations

import codecs
import contextlib
import glob
import gzip
import importlib
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

zstd: Any = None
with contextlib.suppress(ImportError):
    # Python 3.14 has the library.
    _name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    zstd = importlib.import_module(_name)

_DAMAGED = (
    EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, *([zstd.ZstdError] if zstd else [])
)  # fmt: skip
_COMPRESSED = (".gz", ".xz", ".zst")
_READ_IN_DIRECTORIES = (
    *(kind + suffix for kind in (".txt", ".jsonl") for suffix in ("", *_COMPRESSED)),
    ".spacy",
)
_NOT_READ = (
    ".json", ".ndjson", ".conllu", ".parquet", ".tar", ".tgz", ".zip", ".7z", ".bz2",
)  # fmt: skip

reading_observer: ContextVar[Callable[[int], object] | None] = ContextVar("observer", default=None)
"""Function that takes the number of bytes that a reader has read, or None; see `observed_reading`."""


@contextmanager
def observed_reading(observer: Callable[[int], object]) -> Iterator[None]:
    """Inside the `with` block, the corpus readers of this package call `observer` when they have read text.

    Many function calls lie between the progress bar and the readers. Readers in another context (thread) do not
    call `observer`.

    Args:
        observer: function that takes the number of decompressed bytes since the previous call.
    """
    token = reading_observer.set(observer)
    try:
        yield
    finally:
        reading_observer.reset(token)


def text_files(source: str, *, more: tuple[str, ...] = ()) -> list[Path]:
    """Return the paths of text files, sorted.

    Args:
        source: a file, a glob pattern, or a folder. In a folder, all files *.txt, *.jsonl and *.spacy are
            text files. Files *.txt and *.jsonl can be compressed as .gz, .xz or .zst.
        more: suffixes of additional formats that the caller can read, such as ".conllu". Files in these
            formats can be compressed, too.
    """
    if not source:
        raise FileNotFoundError("The path of the text is empty")
    path = Path(source)
    suffixes = (
        *_READ_IN_DIRECTORIES,
        *(suffix + compressed for suffix in more for compressed in ("", *_COMPRESSED)),
    )
    if path.is_dir():
        names = ", ".join(f"*{suffix}" for suffix in suffixes)
        problem = f"this folder contains no {names}. Give a glob pattern for other file names"
        candidates = [
            file
            for file in path.iterdir()
            if file.name.lower().endswith(suffixes) and not file.name.startswith(".")
        ]
    else:
        problem = "it is not a file or folder, and no file matches it as a pattern"
        candidates = [path] if path.is_file() else [*map(Path, glob.glob(source, recursive=True))]
    files = sorted(file for file in candidates if file.is_file())
    if not files:
        raise FileNotFoundError(f"No text at {source!r}: {problem}")
    for file in files:
        try:
            str(file).encode("utf8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"The name of the file {ascii(str(file))} is not UTF-8. Rename the file"
            ) from error
        # A compressed file is not plain text either: "a.json.gz".
        unreadable = kind(file) in _NOT_READ and kind(file) not in more
        if unreadable or (kind(file) == ".spacy" and is_compressed(file)):
            raise ValueError(
                f"{file}: the format {''.join(file.suffixes[-2:])} is not supported. Give plain text or .jsonl (also"
                " compressed as .gz, .xz or .zst), or .spacy"
            )
    if not any(file.stat().st_size for file in files):
        raise ValueError(f"The text {source!r} is empty")
    return files


def kind(file: Path) -> str:
    """Return the suffix of a file, without a suffix for compression: ".jsonl" for "a.jsonl.gz"."""
    return (file.with_suffix("") if is_compressed(file) else file).suffix.lower()


def is_compressed(file: Path) -> bool:
    """Return True if the name of a file ends with a suffix for compression."""
    return file.suffix.lower() in _COMPRESSED


def lines(file: Path, limit: int = -1) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of a UTF-8 file. The text includes the line ending, and
    no byte order marks.

    Args:
        file: the file, which can be compressed.
        limit: a line of more bytes comes in pieces, so that it need not fit into memory; -1: none does.
    """
    number, is_cut = 0, False
    observer = reading_observer.get()
    decoder = codecs.getincrementaldecoder("utf8")()
    try:
        with _open(file) as stream:
            while raw := stream.readline(limit):
                number += not is_cut
                is_cut = len(raw) == limit and not raw.endswith(b"\n")
                if observer is not None:
                    observer(len(raw))
                # Some Windows programs write a byte order mark, which can be anywhere in a file that was joined from
                # others. Remove it, or it would be part of a word.
                yield number, decoder.decode(raw, final=not is_cut).replace("\ufeff", "")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}, line {number} is not UTF-8 ({error.reason} at byte {error.start} of the line)."
            " Correct the file"
        ) from error
    except _DAMAGED as error:
        raise ValueError(f"{file} is damaged after line {number} ({error})") from error


def _open(file: Path) -> AbstractContextManager[Any]:
    if is_compressed(file) and not file.stat().st_size:
        # Python's gzip would read an empty file as an empty text, but no program compresses to an empty file.
        raise EOFError("the compressed file is empty")
    suffix = file.suffix.lower()
    if suffix == ".gz":
        return gzip.open(file, "rb")
    if suffix == ".xz":
        return lzma.open(file, "rb")
    if suffix == ".zst":
        if zstd is None:
            raise ValueError(
                f'{file}: .zst files need another library: pip install "spacy-elmo[zst]"'
            )
        # The window of `zstd --long=31`, the largest.
        return zstd.open(file, "rb", options={zstd.DecompressionParameter.window_log_max: 31})
    return file.open("rb")
