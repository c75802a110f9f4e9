"""Safe reader of `torch.save` files. It does not execute any code in the files."""

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

# No ELMo has other types, such as quantized, complex or 8-bit numbers. NumPy lacks some of them.
_DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip


def read_state_dict(path: str | Path) -> dict[str, Tensor]:
    """Read the state dict of a network from a `torch.save` file.

    The function uses `torch.load` with `weights_only`, which executes no code, because such a file is a
    pickle and can contain any code.

    Returns:
        {name: tensor on the CPU}. bfloat16 is converted to float32, because NumPy has no bfloat16.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is damaged, or contains anything besides tensors, a tensor that is larger than
            its data, or the same tensor many times.
    """
    path = Path(path)
    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    with one_error(path, "a readable file of torch.save"):
        _refuse_packed(path)
        content = _load(path)
        if not isinstance(content, Mapping):
            raise ValueError(
                f"{path} contains a {type(content).__name__}, expected the tensors of a network by their names"
            )
        if problems := [
            f"{name}: {problem}" for name, value in content.items() if (problem := _problem(value))
        ]:
            raise ValueError(
                f"{path} must contain only the tensors of a network, but has:\n  "
                + "\n  ".join(problems)
            )
        # A shared parameter is stored once with several names. Count it once for each name.
        claimed = sum(tensor.numel() * tensor.element_size() for tensor in content.values())
        if claimed > MAX_RATIO * (size := path.stat().st_size):
            raise ValueError(
                f"{path} claims {claimed:,} bytes of tensors, but has only {size:,} bytes: it contains the same tensors"
                " many times"
            )
        return {
            str(name): (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach()
            for name, tensor in content.items()
        }


def _load(path: Path) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # after a warning, loading fails anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if called := re.search(r"GLOBAL (\S+)", str(error)):
            raise ValueError(
                f"{path} contains a call of {called[1]}. This is code, not weights, so it was not executed"
            ) from error
        # PyTorch's own message explains how to execute the file.
        if "weights_only" in str(error):
            raise ValueError(
                "it contains other things than tensors, which were not executed"
            ) from error
        raise


def _refuse_packed(path: Path) -> None:
    """Raise an error if loading a file could take much more memory than the size of the file.

    A compressed zip file is refused, because PyTorch writes zip files without compression. A file from
    PyTorch before 1.6 is not a zip file. It is refused if it declares tensors that are larger than the file.
    """
    if not zipfile.is_zipfile(path):
        check_storages(path)
        return
    with zipfile.ZipFile(path) as file:
        methods = {member.compress_type for member in file.infolist()}
    if methods - {zipfile.ZIP_STORED}:
        raise ValueError(f"{path} is compressed inside. torch.save never writes such files")


def _problem(value: object) -> str | None:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}, expected a tensor"
    if value.dtype not in _DTYPES or value.is_nested or value.is_neg():
        return f"type {value.dtype}{', nested' * value.is_nested}, expected plain numbers"
    if value.layout != torch.strided or value.device.type != "cpu":
        return f"layout {value.layout} on {value.device}, expected plain numbers"
    # Strides of 0 would make a tensor of any size out of one number.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        return f"shape {list(value.shape)}, which is larger than its data"
    return None
