"""Reading of files from strangers: archives, and files of `torch.save`.

No code in a file is executed. A file can claim any size, so no claim may exceed the limits below, which no real
model reaches.
"""

from __future__ import annotations

import errno
import gzip
import pickle
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

# Structure of archives and HDF5 files.
MAX_MEMBERS = 10_000
MAX_DEPTH = 32
# Bytes that an archive may expand to. Compression reduces vocabularies to a fifth of their size, and weights hardly.
# The largest public model, a checkpoint with its optimizer, has 5 GB. The ratio does not limit small files.
_MAX_BYTES = 64 << 30
MAX_RATIO = 20
_SMALL_BYTES = 64 << 20
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_CHUNK_BYTES = 1 << 20


def expanded_bytes(size: int) -> int:
    """Return the largest allowed decompressed size, in bytes, of a file that has `size` bytes on disk."""
    return min(_MAX_BYTES, max(_SMALL_BYTES, MAX_RATIO * size))


@contextmanager
def one_error(path: Path, kind: str) -> Iterator[None]:
    """Turn any error about the content of a file into a ValueError that names the file, because a damaged
    file can raise an error of any class. Missing files and full disks stay OSErrors.

    Args:
        kind: expected type of the file, for the message, such as "a JSON file".
    """
    try:
        yield
    except Exception as error:
        # A damaged file can also raise an OSError, such as EINVAL for a negative position.
        if isinstance(error, OSError) and (error.filename or error.errno in _SYSTEM):
            raise
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
        raise ValueError(f"{path} is not {kind}, or is damaged ({reason})") from error


_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


@dataclass(frozen=True)
class Opened:
    """The folder or file that the user has named, or the unpacked content of an archive."""

    path: Path
    _given: Path
    _unpacked: Path

    def shown(self, text: object) -> str:
        """Replace the temporary paths in a text by paths in the archive, such as `model.zip/options.json`."""
        return str(text).replace(str(self._unpacked), str(self._given))


@contextmanager
def opened(path: str | Path) -> Iterator[Opened]:
    """Open a folder, a file or an archive (.zip, .tar, .tar.gz, .tgz) for a `with` block.

    An archive is unpacked into a temporary folder, which is deleted after the block. If a folder contains
    nothing but a subfolder, the subfolder is opened.
    """
    path = Path(path)
    if path.is_dir() or not path.name.lower().endswith(_ARCHIVES):
        yield Opened(_top(path), path, path)
        return
    with TemporaryDirectory(prefix="spacy-elmo-") as name:
        content = Path(name, "content")
        try:
            with one_error(path, "a readable archive"):
                (_unpack_zip if path.suffix.lower() == ".zip" else _unpack_tar)(path, content)
            yield Opened(_top(content), path, content)
        except (ValueError, OSError) as error:
            raise ValueError(Opened(content, path, content).shown(error)) from error


def _top(path: Path) -> Path:
    if not path.is_dir():
        return path
    entries = [entry for entry in path.iterdir() if entry.name != "__MACOSX"]
    return _top(entries[0]) if len(entries) == 1 and entries[0].is_dir() else path


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        members = file.infolist()
        _check_sizes(archive, [member.file_size for member in members])
        # zipfile limits the output of these two methods, but other decoders may return gigabytes from one call.
        if {m.compress_type for m in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ValueError(
                "it is compressed by an unusual method. Unpack it, and give the folder"
            )
        file.extractall(folder)


def _unpack_tar(archive: Path, folder: Path) -> None:
    plain = archive
    if archive.suffix.lower() != ".tar":
        # tarfile reads headers of any length into memory, so they must be in a file of limited size.
        plain, size = folder.with_name("plain.tar"), 0
        with gzip.open(archive) as packed, plain.open("wb") as file:
            while chunk := packed.read(_CHUNK_BYTES):
                size += len(chunk)
                _check_sizes(archive, [size])
                file.write(chunk)
    with tarfile.open(plain, "r:") as tar:
        _check_sizes(archive, [member.size for member in tar])
        tar.extractall(folder, filter="data")


def _check_sizes(archive: Path, sizes: Sequence[int]) -> None:
    limit = expanded_bytes(archive.stat().st_size)
    if sum(sizes) > limit or len(sizes) > MAX_MEMBERS:
        raise ValueError(
            f"{archive} unpacks to more than {limit:,} bytes or {MAX_MEMBERS:,} files, the limits for an archive of its"
            " size. If you trust it, unpack it, and give the folder"
        )


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """Read the parameters of a network from a `torch.save` file, as {name: array}.

    `torch.load` with `weights_only` executes no code. It also reads files of PyTorch before 1.6, as in all
    published models of ELMoForManyLangs. bfloat16 is converted to float32, because NumPy has no bfloat16.
    """
    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    size = path.stat().st_size
    with one_error(path, "a file of torch.save that contains only tensors"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                if sum(member.file_size for member in file.infolist()) > size:
                    raise ValueError("it is compressed, which torch.save never does")
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            # PyTorch's message explains how to execute the file.
            called = re.search(r"GLOBAL (\S+)", str(error))
            part = f"a call of {called[1]}" if called else "other objects"
            raise ValueError(f"it contains {part}, which was not executed") from error
        if not isinstance(content, Mapping):
            raise ValueError(f"a {type(content).__name__}")
        for name, value in content.items():
            if not isinstance(value, Tensor):
                raise ValueError(f"{name} is a {type(value).__name__}")
        # A shared parameter is stored once with several names. A stride of 0 makes a tensor of any size from a number.
        claimed = sum(tensor.numel() * tensor.element_size() for tensor in content.values())
        if claimed > MAX_RATIO * size:
            raise ValueError(f"{claimed:,} bytes of tensors in a file of {size:,} bytes")
        return {
            str(name): (t.float() if t.dtype == torch.bfloat16 else t).detach().numpy()
            for name, t in content.items()
        }
