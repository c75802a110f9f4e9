"""The digest of a weights file, which detects damage to any number, word or setting when the file is loaded.

XXH3 keeps pace with the memory, so that it costs a few percent of loading. It detects accidents; it is no signature.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from io import BufferedReader
from typing import Any

import torch
import xxhash
from torch import Tensor

DIGEST = "digest"
"""Entry of the header with the digest of all other entries and of the tensors."""
_FIRST_ENTRIES = {"format", "config", "card"}
"""The entries in the header of a file without a digest."""
# A block remains in the processor's cache between reading and hashing.
_BLOCK_BYTES = 1 << 18
_DTYPE_NAMES = {
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "U8": torch.uint8,
}  # fmt: skip
"""The types that a weights file contains, by their names in its header."""


def read_tensors(file: BufferedReader, layout: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors into memory of their own, so that later changes of the file do not affect them.

    The tensors of safetensors are views of the mapped file, and copying them would take the memory of the file twice.

    Args:
        file: positioned at its start.
        layout: the same file opened by safetensors, which has validated its header.

    Returns:
        The tensors, and the digests of their bytes.

    Raises:
        EOFError: the file has become shorter since.
    """
    tensors, digests = {}, {}
    size = int.from_bytes(file.read(8), "little")
    entries = json.loads(file.read(size))
    entries.pop("__metadata__", None)
    for name, entry in entries.items():
        # Not `empty_like(get_tensor(...))` alone: a view of the file takes longer than reading a small tensor.
        dtype = _DTYPE_NAMES.get(entry["dtype"]) or layout.get_tensor(name).dtype
        tensors[name] = torch.empty(entry["shape"], dtype=dtype)
        file.seek(8 + size + entry["data_offsets"][0])
        digests[name] = _read_tensor(file, tensors[name])
    return tensors, digests


def _read_tensor(file: BufferedReader, tensor: Tensor) -> str:
    """Fill a tensor from a file, and return the digest of its bytes.

    Raises:
        EOFError: the file ends too early.
    """
    content = _content(tensor)
    digest = xxhash.xxh3_128()
    for start in range(0, len(content), _BLOCK_BYTES):
        block = content[start : start + _BLOCK_BYTES]
        if file.readinto(block) < len(block):
            raise EOFError("a tensor ends too early")
        digest.update(block)
    return digest.hexdigest()


def tensor_digest(tensor: Tensor) -> str:
    """Return the digest of the bytes of a contiguous tensor."""
    return xxhash.xxh3_128_hexdigest(_content(tensor))


def file_digest(
    header: Mapping[str, str], tensors: Mapping[str, Tensor], digests: Mapping[str, str]
) -> str:
    """Return the digest of a weights file, as 32 hexadecimal digits.

    Args:
        header: the entries of its header.
        tensors: its tensors, for their shapes and types.
        digests: the digests of their bytes.
    """
    entries = sorted((name, value) for name, value in header.items() if name != DIGEST)
    described = [
        (name, str(tensors[name].dtype), list(tensors[name].shape), digests[name])
        for name in sorted(tensors)
    ]
    return xxhash.xxh3_128_hexdigest(json.dumps([entries, described]).encode())


def check_digest(
    source: str,
    header: Mapping[str, str],
    tensors: Mapping[str, Tensor],
    digests: Mapping[str, str],
) -> None:
    """Compare a weights file with the digest in its header; warn if it has none.

    Args:
        source: name of the file for messages.
        header, tensors, digests: see `file_digest`.

    Raises:
        ValueError: the file has changed since it was written.
    """
    if DIGEST not in header:
        if unknown := sorted(header.keys() - _FIRST_ENTRIES):
            # Damage can change the name of the digest as well as its value.
            raise ValueError(f"{source} is damaged: unknown entries {unknown!r:.200} in its header")
        warnings.warn(
            f"{source} was written by an earlier version, without a digest: damage to its numbers is not detected."
            " To add one, load it and save it again: spacy_elmo.Weights.load(path).save(path)",
            stacklevel=4,
        )
    elif header[DIGEST] != file_digest(header, tensors, digests):
        raise ValueError(
            f"{source} is damaged: it has changed since it was written (its digest is another). Restore it from a copy"
        )


def _content(tensor: Tensor) -> memoryview:
    return tensor.view(-1).view(torch.uint8).numpy().data
