"""Upper limits for the sizes in files, such as the number of layers. No real model reaches these limits.

Without limits, a damaged or hostile file of a few kilobytes could require unlimited memory or time.
"""

# Configuration of a biLM. The largest public models have 8,192 cells and 50 characters per word.
MAX_WIDTH = 1_000_000
MAX_LAYERS = 1_000
MAX_ROWS = 1_000_000_000
MAX_CHARACTERS = 1_000
MAX_CLIP = 10_000.0

# Bytes that an archive may expand to. Compression reduces vocabularies to a fifth of their size, and weights hardly.
# The largest public model, a checkpoint with its optimizer, has 5 GB. The ratio does not limit small files.
MAX_BYTES = 64 << 30
MAX_RATIO = 20
SMALL_BYTES = 64 << 20

# Structure of archives and HDF5 files.
MAX_MEMBERS = 10_000
MAX_DEPTH = 32


def expanded_bytes(size: int) -> int:
    """Return the largest allowed decompressed size, in bytes, of a file that has `size` bytes on disk."""
    return min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * size))
