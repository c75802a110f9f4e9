"""The checkpoint of a run."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from ..files import atomic_file, remove_partial

CHECKPOINT = "checkpoint/current.pt"


def save_checkpoint(state: dict[str, Any], out: Path) -> None:
    """Replace the checkpoint in the folder of a run. If the process is killed or the disk is full, the former one
    remains."""
    path = out / CHECKPOINT
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_partial(path.parent)
    try:
        with atomic_file(path) as partial:
            torch.save(state, partial)
    except (OSError, RuntimeError) as error:  # torch raises a RuntimeError if the disk is full
        raise OSError(
            f"Cannot write a checkpoint to {path.parent}, so the previous one is kept: {error}"
        ) from error


def load_checkpoint(out: Path) -> dict[str, Any] | None:
    """Return the checkpoint in the folder of a run, or None if there is none."""
    path = out / CHECKPOINT
    if not path.exists():
        return None
    try:
        # `torch.load` does not check the checksums.
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:
                raise ValueError(f"{damaged} does not match its checksum")
        # Loaded to the CPU, because the machine may have another GPU, or none, when a run is resumed.
        return torch.load(path, map_location="cpu", weights_only=True)
    # A damaged zip archive can raise a dozen types of exceptions, including OSError.
    except Exception as error:
        raise ValueError(
            f"The checkpoint {path} cannot be read. If it is damaged, delete it to start again. If the memory or the"
            f" disk is the reason, the checkpoint may be whole: {error}"
        ) from error
