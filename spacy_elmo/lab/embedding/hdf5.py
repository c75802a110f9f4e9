"""Writer of HDF5 files with vectors, in the layout of the command `allennlp elmo` (AllenNLP up to 0.9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from ...output_file import OutputFile
from .vectors import Vectors

_SETTINGS = "spacy_elmo_settings"


def write_hdf5(vectors: Vectors, path: Path) -> None:
    """Write vectors to an HDF5 file with one dataset per item (text). The names of the datasets are "0", "1",
    ...

    As in AllenNLP, a dataset has the shape (layers, tokens, width), or (tokens, width) for the average or the
    top layer. With pooling, there is no axis for tokens. The dataset `sentence_to_index`, (1,), contains a
    JSON object that maps the tokens of each item, joined by spaces, to the name of the dataset. If several
    items have the same tokens, the object names the dataset of the last item. Memory holds this object, but
    not the vectors of the corpus.

    The dataset of a blank line has no tokens. AllenNLP rejects blank lines.

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
    """Return the settings with which the vectors in a file of `write_hdf5` were computed.

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
