"""Vectors as a Parquet file."""

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


def write(vectors: Vectors, path: Path) -> None:
    """Write a file with a row per item and a row group per shard.

    The columns are `id`, int64, the number of the item; `tokens`, a list of strings; and `layer_0`, `layer_1`, ... or,
    where layers were averaged or one was chosen, `vectors`: a list with a vector for each token, or one vector, pooled.
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


def read_settings(path: Path) -> Mapping[str, Any]:
    """The settings with which `write` has made a file.

    Raises:
        ValueError: it is not of its making, or damaged.
    """
    try:
        return json.loads((pq.read_schema(path).metadata or {})[_SETTINGS])
    except (KeyError, pa.ArrowException) as error:
        raise ValueError(f"{path} is no Parquet file of vectors ({error})") from error


def _table(shard: ShardFile) -> pa.Table:
    about = shard.about
    text = pa.Array.from_buffers(
        pa.large_string(),
        about["rows"],
        [
            None,
            pa.py_buffer(shard.tensor("token_offsets")),
            pa.py_buffer(shard.tensor("token_bytes")),
        ],
    )
    offsets = pa.array(shard.tensor("offsets"))
    columns = {
        "id": pa.array(np.arange(about["first"], about["first"] + about["items"])),
        "tokens": pa.LargeListArray.from_arrays(offsets, text),
    }
    for name, rows in _named(shard.tensor("vectors")):
        values = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
        columns[name] = (
            values if about["pooled"] else pa.LargeListArray.from_arrays(offsets, values)
        )
    return pa.table(columns)


def _named(vectors: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if vectors.ndim == 2:
        yield "vectors", vectors
    else:
        yield from ((f"layer_{number}", layer) for number, layer in enumerate(vectors))
