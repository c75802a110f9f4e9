"""Writer of HDF5 files with vectors, in the layout of the command `allennlp elmo` (AllenNLP up to 0.9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from ..output_file import OutputFile
from .vectors import Vectors

_SETTINGS = "spacy_elmo_settings"


def write_hdf5(vectors: Vectors, path: Path) -> None:
    """Write vectors to an HDF5 file with one dataset per item of the corpus, such as a line.

    The datasets have the names "0", "1", ..., in the order of the items. As in AllenNLP, a dataset has the
    shape (layers, tokens, width), or (tokens, width) if the vectors are from one layer or the average of the
    layers. With pooling, the axis for tokens is missing. A blank line has a dataset with 0 tokens.

    Another dataset, `sentence_to_index`, contains a JSON object that maps the tokens of each item, joined by
    spaces, to the name of the item's dataset. If several items have the same tokens, the object names the
    dataset of the last such item.

    Raises:
        OSError: the file cannot be written.
    """
    sentences: dict[str, str] = {}
    with OutputFile(path, "w+b") as raw, h5py.File(raw, "w") as file:
        number = 0
        for index in range(len(vectors.files)):
            shard = vectors.shard(index)
            for item in range(shard.metadata["items"]):
                file.create_dataset(str(number), data=shard.vectors(item))
                sentences[" ".join(shard.tokens(item))] = str(number)
                number += 1
                raw.raise_error()
        names = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
        names[0] = json.dumps(sentences)
        file.attrs[_SETTINGS] = json.dumps(vectors.settings)
        file.close()
        raw.raise_error()


def read_hdf5_settings(path: Path) -> Mapping[str, Any]:
    """Return the settings of the `embed` call that made the vectors in an HDF5 file of `write_hdf5`.

    Raises:
        ValueError: the file has another format, or is damaged.
    """
    try:
        with h5py.File(path, "r") as file:
            return json.loads(file.attrs[_SETTINGS])
    except Exception as error:  # a damaged file can raise an error of any class
        raise ValueError(
            f"{path} is not an HDF5 file of vectors, or is damaged ({error})"
        ) from error
