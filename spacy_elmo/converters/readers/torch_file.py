"""Files of `torch.save`, read without executing code in them."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ...limits import MAX_RATIO
from .errors import one_error
from .old_torch_file import check_storages

# Other types, such as quantized, complex or 8-bit floats, occur in no ELMo, and NumPy lacks some of them.
_DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip


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
    with one_error(path, "a readable file of torch.save"):
        _refuse_packed(path)
        content = _load(path)
        if not isinstance(content, Mapping):
            raise ValueError(
                f"{path}: a {type(content).__name__}, expected the tensors of a network"
            )
        if problems := [
            f"{name}: {problem}" for name, value in content.items() if (problem := _problem(value))
        ]:
            raise ValueError(
                f"{path}: not the tensors of a network alone:\n  " + "\n  ".join(problems)
            )
        # Shared parameters are stored once, under several names, each of which counts here.
        claimed = sum(tensor.numel() * tensor.element_size() for tensor in content.values())
        if claimed > MAX_RATIO * (size := path.stat().st_size):
            raise ValueError(
                f"{path}: {claimed:,} bytes of tensors in a file of {size:,}: the same ones many times"
            )
        return {
            str(name): (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach()
            for name, tensor in content.items()
        }


def _load(path: Path) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # loading fails right after them
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if called := re.search(r"GLOBAL (\S+)", str(error)):
            raise ValueError(
                f"{path}: contains a call of {called[1]}, which is code and not weights; it was not executed"
            ) from error
        if "weights_only" in str(
            error
        ):  # PyTorch's message explains how to execute the file nevertheless
            raise ValueError(
                "a pickle of something besides tensors; it was not executed"
            ) from error
        raise


def _refuse_packed(path: Path) -> None:
    """Refuse what would expand to any size: a zip with compressed members, of which PyTorch writes none, and a file of
    PyTorch before 1.6 with storages that are larger than the file."""
    if not zipfile.is_zipfile(path):
        check_storages(path)
        return
    with zipfile.ZipFile(path) as file:
        methods = {member.compress_type for member in file.infolist()}
    if methods - {zipfile.ZIP_STORED}:
        raise ValueError(f"{path}: its members are compressed, which torch.save never does")


def _problem(value: object) -> str | None:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}, expected a tensor"
    if value.dtype not in _DTYPES or value.is_nested or value.is_neg():
        return f"type {value.dtype}{', nested' * value.is_nested}, expected plain numbers"
    if value.layout != torch.strided or value.device.type != "cpu":
        return f"layout {value.layout} on {value.device}, expected plain numbers"
    # Strides of 0 would make a tensor of any size out of one number.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        return f"shape {list(value.shape)}, more than its data"
    return None
