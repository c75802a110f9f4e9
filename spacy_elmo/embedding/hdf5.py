"""HDF5 files of vectors in the layout of `allennlp elmo` (AllenNLP up to 0.9)."""

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
    """Write a file with a dataset per item, named by its number: "0", "1", ...

    A dataset is (layers, n_tokens, width), or (n_tokens, width) for the average or a single layer, as in AllenNLP.
    `sentence_to_index`, (1,), is JSON that maps the tokens of an item, joined by spaces, to its number; of equal items
    to that of the last one. Only this text is held in memory.

    A blank line, which AllenNLP rejects, has a dataset without tokens.

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
    """Return the settings of the vectors in a file that `write_hdf5` has written.

    Raises:
        ValueError: it is not such a file, or damaged.
    """
    try:
        with h5py.File(path, "r") as file:
            return json.loads(file.attrs[_SETTINGS])
    except Exception as error:  # the parsers raise many kinds for a damaged file
        raise ValueError(f"{path} is not an HDF5 file of vectors, or damaged ({error})") from error
