"""Files of `torch.save`, read without executing code in them."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

# Shared parameters are stored once, under several names. Each name counts as a tensor of its own here.
_MOST_NAMES = 20


def read_state_dict(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a network by their names, on the CPU, with bfloat16 as float32, which NumPy supports.

    Such a file is a pickle, that is, a program. PyTorch's `weights_only` loader executes nothing in it except the
    construction of tensors.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is damaged; or it contains anything besides tensors (names it), a tensor that is larger than its
            data, or the same tensor under very many names.
    """
    path = Path(path)
    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    _refuse_packed(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # loading fails right after them
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can raise any class of error
        raise ValueError(_unreadable(path, error)) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"{path}: a {type(content).__name__}, expected the tensors of a network")
    if problems := [
        f"{name}: {problem}" for name, value in content.items() if (problem := _problem(value))
    ]:
        raise ValueError(f"{path}: not the tensors of a network alone:\n  " + "\n  ".join(problems))
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in content.values())
    if claimed > _MOST_NAMES * (size := path.stat().st_size):
        raise ValueError(
            f"{path}: {claimed:,} bytes of tensors in a file of {size:,}: the same ones again and again"
        )
    return {
        str(name): (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach()
        for name, tensor in content.items()
    }


def _refuse_packed(path: Path) -> None:
    """Refuse a zip with compressed members: PyTorch writes none, but would decompress them, to any size."""
    try:
        if not zipfile.is_zipfile(path):
            return  # PyTorch before 1.6
        with zipfile.ZipFile(path) as file:
            methods = {member.compress_type for member in file.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise ValueError(_unreadable(path, error)) from error
    if methods - {zipfile.ZIP_STORED}:
        raise ValueError(f"{path}: its members are compressed, which torch.save never does")


def _problem(value: object) -> str | None:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}, expected a tensor"
    if value.layout != torch.strided or value.device.type != "cpu":
        return f"layout {value.layout} on {value.device}, expected numbers alone"
    # Strides of 0 would make a tensor of any size out of one number.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        return f"shape {list(value.shape)}, more than its data"
    return None


def _unreadable(path: Path, error: Exception) -> str:
    if named := re.search(r"GLOBAL (\S+)", str(error)):
        return f"{path}: contains a call of {named[1]}, which is code and not weights; it was not executed"
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    if "weights_only" in reason:  # PyTorch's message explains how to execute the file nevertheless
        reason = "a pickle of something besides tensors; it was not executed"
    return f"{path}: not a readable file of torch.save, or truncated ({reason})"
