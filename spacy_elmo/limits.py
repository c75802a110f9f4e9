"""Limits that no real model reaches, for numbers that a damaged or hostile file can claim.

Without them, a file of a few kilobytes can ask for any amount of memory or time. A message about a limit contains it.
"""

# The configuration of a biLM. The largest public models have 8,192 cells and 50 characters a word.
MAX_WIDTH = 1_000_000
MAX_LAYERS = 1_000
MAX_ROWS = 1_000_000_000
MAX_CHARACTERS = 1_000
MAX_CLIP = 10_000.0

# Bytes that a file may expand to. Compression hardly shrinks weights, and vocabularies to a fifth; the largest public
# model, a checkpoint with its optimizer, has 5 GB. Small files may have any ratio.
MAX_BYTES = 64 << 30
MAX_RATIO = 20
SMALL_BYTES = 64 << 20

# The structure of archives and HDF5 files, and of TensorFlow's checkpoints. bilm-tf's longest name has 95 bytes.
MAX_MEMBERS = 10_000
MAX_DEPTH = 32
MAX_TENSORS = 100_000
MAX_NAME_BYTES = 1_024
MAX_AXES = 8


def expanded_bytes(size: int) -> int:
    """Return the number of bytes that a file of `size` bytes may expand to."""
    return min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * size))
