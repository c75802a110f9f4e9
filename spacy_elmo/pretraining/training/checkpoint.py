"""Checkpoints: the state of a run on disk. Whenever the process is killed, a complete checkpoint remains."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ...files import atomic_file, remove_partial
from ...output_file import OutputFile

_CURRENT, _PREVIOUS = "current.pt", "previous.pt"


def save(state: dict[str, Any], folder: Path) -> None:
    """Write a checkpoint to `current.pt` in a folder. The checkpoint before is kept as `previous.pt`.

    Raises:
        OSError: the disk is full or not writable. The existing checkpoints are unchanged.
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
            f"Cannot write a checkpoint to {folder}, so the previous one is kept: {error}"
        ) from error


def load(folder: Path) -> dict[str, Any] | None:
    """Return the newest complete checkpoint in a folder, or None if there is no checkpoint.

    Raises:
        OSError: a checkpoint cannot be opened.
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
                # Loaded to the CPU, because the machine may have another GPU, or none, when a run is resumed.
                return torch.load(file, map_location="cpu", weights_only=True)
            # A damaged zip archive can raise a dozen types of exceptions, including OSError.
            except Exception as error:
                problems.append(f"{folder / name}: {error}")
    if problems:
        raise ValueError(
            f"No checkpoint in {folder} can be read. If it is damaged, delete it to start again. If the memory or the"
            " disk is the reason, the checkpoint may be whole:\n  " + "\n  ".join(problems)
        )
    return None


def _check_members(file: BinaryIO) -> None:
    """Check the checksums in a checkpoint (a zip archive), because `torch.load` does not check them.

    Raises:
        ValueError: a file in the archive is damaged. If the archive itself is damaged, `zipfile` raises other
            errors.
    """
    with zipfile.ZipFile(file) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} does not match its checksum")
    file.seek(0)
