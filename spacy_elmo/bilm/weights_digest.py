"""The digest of a weights file, which detects damage to any number, word or setting when the file is loaded.

XXH3 keeps pace with the memory, so that it costs a few percent of loading. It detects accidents; it is no signature.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from io import BufferedReader

import torch
import xxhash
from torch import Tensor

DIGEST = "digest"
"""Entry of the header with the digest of all other entries and of the tensors."""
# A block remains in the processor's cache between reading and hashing.
_BLOCK_BYTES = 1 << 18


def read_tensor(file: BufferedReader, tensor: Tensor) -> str:
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
