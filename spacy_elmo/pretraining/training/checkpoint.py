"""Checkpoints: the state of a run on disk. Whenever the process is killed, a complete one remains."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ...files import atomic_file, remove_partial
from ...output_file import OutputFile

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
