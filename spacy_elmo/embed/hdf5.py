"""Vectors in the HDF5 layout of `allennlp elmo` (AllenNLP up to 0.9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from .vectors import Vectors

_SETTINGS = "spacy_elmo_settings"


def write(vectors: Vectors, path: Path) -> None:
    """Write a file with a dataset per item, named by its number: "0", "1", ...

    A dataset is (layers, n_tokens, width), or (n_tokens, width) where layers were averaged or one was chosen, as in
    AllenNLP. `sentence_to_index`, (1,), is JSON: the tokens of an item with spaces between them -> its number; of
    equal items the last one's. This text is all that is held in memory.

    A blank line, which AllenNLP refuses, has a dataset without tokens.
    """
    sentences: dict[str, str] = {}
    with h5py.File(path, "w") as file:
        number = 0
        for index in range(len(vectors.files)):
            shard = vectors.shard(index)
            for item in range(shard.about["items"]):
                file.create_dataset(str(number), data=shard.vectors(item))
                sentences[" ".join(shard.tokens(item))] = str(number)
                number += 1
        names = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
        names[0] = json.dumps(sentences)
        file.attrs[_SETTINGS] = json.dumps(vectors.settings)


def read_settings(path: Path) -> Mapping[str, Any]:
    """The settings with which `write` has made a file.

    Raises:
        ValueError: it is not of its making, or damaged.
    """
    try:
        with h5py.File(path, "r") as file:
            return json.loads(file.attrs[_SETTINGS])
    except (KeyError, OSError) as error:
        raise ValueError(f"{path} is no HDF5 file of vectors ({error})") from error
