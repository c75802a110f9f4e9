"""Checkpoints: the state of a run on disk, and whether it fits the run that resumes it.

Whenever the process is killed, a complete one remains.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from ...digest import Digest
from ...files import atomic_file, remove_partial
from ...output_file import OutputFile
from ..corpus.prepared import Corpus

_CURRENT, _PREVIOUS = "current.pt", "previous.pt"


def save(state: dict[str, Any], folder: Path) -> None:
    """Write a checkpoint; the one before is kept beside it as `previous.pt`.

    Raises:
        OSError: the disk is full or not writable; the checkpoint before is unchanged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_partial(folder)
    try:
        with atomic_file(folder / _CURRENT, previous=folder / _PREVIOUS) as partial:
            with OutputFile(partial, "wb") as file:
                torch.save(state, file)
                file.raise_error()
    except OSError as error:
        raise OSError(
            f"Cannot write a checkpoint to {folder}, the one before it is kept: {error}"
        ) from error


def load(folder: Path) -> dict[str, Any] | None:
    """Return the newest complete checkpoint, or None if there is no checkpoint.

    Raises:
        OSError: a file cannot be opened.
        ValueError: there are checkpoints, but none is complete.
    """
    problems = []
    for name in (_CURRENT, _PREVIOUS):
        try:
            file = (folder / name).open("rb")
        except FileNotFoundError:
            continue
        with file:
            try:
                _check_members(file)
                # To the CPU first: a run may be resumed on a machine with another GPU, or none.
                return torch.load(file, map_location="cpu", weights_only=True)
            # A damaged zip archive raises any of a dozen types, including OSError.
            except Exception as error:
                problems.append(f"{folder / name}: {error}")
    if problems:
        raise ValueError("No readable checkpoint:\n  " + "\n  ".join(problems))
    return None


def _check_members(file: BinaryIO) -> None:
    """Compare the members of the zip archive with their checksums, which `torch.load` does not.

    Raises:
        ValueError: a member is damaged. The parser raises other errors for a damaged archive.
    """
    with zipfile.ZipFile(file) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} does not fit its checksum")
    file.seek(0)


def digests(corpus: Corpus, vocabulary: Sequence[str]) -> dict[str, str]:
    """Return digests of what a checkpoint depends on: the ids of words, the order of sentences, and the words of the
    rows of the head."""
    return {
        "corpus": _digest(corpus.types, corpus.train.offsets),
        "vocabulary": _digest(vocabulary),
    }


def check_digests(state: Mapping[str, Any], expected: Mapping[str, str], checkpoint: Path) -> None:
    """Check that the state of a checkpoint has these digests.

    Raises:
        ValueError: it belongs to another corpus or vocabulary.
    """
    for name, digest in expected.items():
        if state[name] != digest:
            raise ValueError(
                f"The checkpoint in {checkpoint} belongs to another {name}, whose words have other ids. Give the run"
                f" its former {name}, or start in another folder"
            )


def warn_of_other_rounding(state: Mapping[str, Any], ranks: int) -> None:
    """Warn if the run was saved with another number of threads or processes, so that sums are rounded differently."""
    for name, now, remedy in (
        ("threads", torch.get_num_threads(), "OMP_NUM_THREADS"),
        ("ranks", ranks, "`torchrun --nproc-per-node`"),
    ):
        if state[name] != now:
            warnings.warn(
                f"The run was saved with {state[name]} {name} and continues with {now}, so sums are rounded differently"
                f" from those of an unbroken run. {remedy} sets the number",
                stacklevel=3,
            )


def _digest(words: Sequence[str], offsets: np.ndarray | None = None) -> str:
    digest = Digest("\n".join(words).encode("utf8", "surrogatepass"))
    if offsets is not None:
        digest.update(np.ascontiguousarray(offsets).tobytes())
    return digest.hexdigest()
