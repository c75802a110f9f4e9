"""Checkpoints: the state of a run on disk, of which a kill at any moment leaves a complete one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...files import atomic_file, remove_partial

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
            with partial.open("wb") as file:
                torch.save(state, file)
    except (OSError, RuntimeError) as error:
        # torch reports a failed write of its zip archive as a RuntimeError; the cause is the error before it.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        raise OSError(
            f"Cannot write a checkpoint to {folder}, the one before it is kept: {cause}"
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
                # To the CPU first: a run may be resumed on a machine with another GPU, or none.
                return torch.load(file, map_location="cpu", weights_only=True)
            # A damaged zip archive raises any of a dozen types, including OSError.
            except Exception as error:
                problems.append(f"{folder / name}: {error}")
    if problems:
        raise ValueError("No readable checkpoint:\n  " + "\n  ".join(problems))
    return None
