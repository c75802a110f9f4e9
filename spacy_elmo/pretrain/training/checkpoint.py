"""The state of a run on disk: written beside and moved into place, so that a kill at any moment leaves a whole one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


def save(state: dict[str, Any], folder: Path) -> None:
    """Write a checkpoint; the one before stays beside it as `previous.pt`.

    Raises:
        OSError: the disk is full or not writable; the checkpoint that stood there is untouched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial, current, previous = (
        folder / name for name in ("partial.pt", "current.pt", "previous.pt")
    )
    try:
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        # torch reports a failed write of its zip archive as a RuntimeError; the cause is the error before it.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        raise OSError(
            f"Cannot write a checkpoint to {folder}, the one before it is kept: {cause}"
        ) from error
    if current.exists():
        current.replace(previous)
    partial.replace(current)


def load(folder: Path) -> dict[str, Any] | None:
    """The newest whole checkpoint; None if there never was one.

    Raises:
        OSError: a file cannot be opened.
        ValueError: there are checkpoints, and none is whole.
    """
    problems = []
    for name in ("current.pt", "previous.pt"):
        try:
            file = (folder / name).open("rb")
        except FileNotFoundError:
            continue
        with file:
            try:
                # To the CPU first: the machine that goes on may have another GPU, or none.
                return torch.load(file, map_location="cpu", weights_only=True)
            # A damaged zip archive shows as any of a dozen types, OSError among them.
            except Exception as error:
                problems.append(f"{folder / name}: {error}")
    if problems:
        raise ValueError("No readable checkpoint:\n  " + "\n  ".join(problems))
    return None
