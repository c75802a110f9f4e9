"""Writer of Parquet files with the vectors of a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .shard_file import ShardFile
from .vectors import Vectors

_SETTINGS = b"spacy_elmo_settings"


def write_parquet(vectors: Vectors, path: Path) -> None:
    """Write vectors to a Parquet file with one row per item (text) and one row group per shard file.

    The columns are

    - `id` (int64): the index of the item in the corpus;
    - `tokens`: the list of the item's tokens (strings);
    - `layer_0`, `layer_1`, ... for all layers, or `vectors` for the average or the top layer: a list with a
      vector for each token. With pooling: one vector.
    """
    writer = None
    try:
        for index in range(len(vectors.files)):
            table = _table(vectors.shard(index)).replace_schema_metadata(
                {_SETTINGS: json.dumps(vectors.settings)}
            )
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table, row_group_size=len(table))
    finally:
        if writer is not None:
            writer.close()


def read_parquet_settings(path: Path) -> Mapping[str, Any]:
    """Return the settings with which the vectors in a file of `write_parquet` were computed.

    Raises:
        ValueError: the file has another format, or is damaged.
    """
    try:
        return json.loads((pq.read_schema(path).metadata or {})[_SETTINGS])
    except Exception as error:  # a damaged file can raise an error of any class
        raise ValueError(
            f"{path} is not a Parquet file of vectors, or is damaged ({error})"
        ) from error


def _table(shard: ShardFile) -> pa.Table:
    metadata = shard.metadata
    text = pa.Array.from_buffers(
        pa.large_string(),
        metadata["rows"],
        [
            None,
            pa.py_buffer(shard.tensor("token_offsets")),
            pa.py_buffer(shard.tensor("token_bytes")),
        ],
    )
    offsets = pa.array(shard.tensor("offsets"))
    columns = {
        "id": pa.array(np.arange(metadata["first"], metadata["first"] + metadata["items"])),
        "tokens": pa.LargeListArray.from_arrays(offsets, text),
    }
    for name, rows in _columns(shard.tensor("vectors")):
        values = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
        columns[name] = (
            values if metadata["pooled"] else pa.LargeListArray.from_arrays(offsets, values)
        )
    return pa.table(columns)


def _columns(vectors: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if vectors.ndim == 2:
        yield "vectors", vectors
    else:
        yield from ((f"layer_{number}", layer) for number, layer in enumerate(vectors))
