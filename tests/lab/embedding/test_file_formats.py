"""HDF5 as written by `allennlp elmo`, and Parquet, are compared with the folder of the same vectors."""

import json
import sys

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from spacy_elmo.lab.embedding.embed_corpus import embed_shards
from spacy_elmo.lab.embedding.embedder import EmbedOptions
from spacy_elmo.lab.embedding.hdf5 import read_hdf5_settings
from spacy_elmo.lab.embedding.parquet import read_parquet_settings
from spacy_elmo.lab.embedding.vectors import open_vectors

OPTIONS = [
    EmbedOptions(),
    EmbedOptions(dtype="float16"),
    EmbedOptions(layers="average"),
    EmbedOptions(layers="top", pooling="max"),
    EmbedOptions(pooling="mean"),
]


@pytest.fixture(params=OPTIONS, ids=str)
def written(request, nlp, text, tmp_path):
    """Return a folder of vectors, and a function that writes them to a file."""
    list(embed_shards(nlp, str(text), tmp_path / "folder", request.param))

    def write(format):
        out = tmp_path / format
        list(embed_shards(nlp, str(text), out, request.param, format=format))
        return out

    return open_vectors(tmp_path / "folder"), write


def test_hdf5(written):
    vectors, write = written
    with h5py.File(write("hdf5")) as file:
        assert set(file) == {*map(str, range(7)), "sentence_to_index"}
        for number in range(7):
            assert file[str(number)].dtype == vectors[number].dtype
            assert np.array_equal(file[str(number)][...], vectors[number])


def test_sentence_to_index(nlp, tmp_path):
    """The dataset is one string of JSON, as readers for AllenNLP expect: `json.loads(file["sentence_to_index"][0])`."""
    (tmp_path / "a.txt").write_text("The cat sat .\n\nnaïve\nThe cat sat .\n")
    out = tmp_path / "a.hdf5"
    list(embed_shards(nlp, str(tmp_path / "a.txt"), out, tokenized=True, format="hdf5"))
    with h5py.File(out) as file:
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
        assert index == {"The cat sat .": "3", "": "1", "naïve": "2"}
        assert file["1"].shape == (3, 0, 10)
        assert np.array_equal(file["0"][...], file["3"][...])


def test_parquet(written):
    vectors, write = written
    path = write("parquet")
    table = pq.read_table(path)
    assert pq.ParquetFile(path).num_row_groups == len(vectors.files) > 1
    assert table["id"].to_pylist() == list(range(7))
    names = [name for name in table.column_names if name not in ("id", "tokens")]
    layered = vectors.settings["layers"] == "all"
    assert names == (["layer_0", "layer_1", "layer_2"] if layered else ["vectors"])
    for number in range(7):
        assert table["tokens"][number].as_py() == vectors.tokens(number)
        actual = [np.array(table[name][number].as_py(), vectors[number].dtype) for name in names]
        expected = vectors[number] if layered else [vectors[number]]
        for own, other in zip(actual, expected, strict=True):
            assert np.array_equal(own.reshape(other.shape), other)


@pytest.mark.parametrize("read_settings", [read_hdf5_settings, read_parquet_settings])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_files_of_others(tmp_path, read_settings, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="file of vectors"):
        read_settings(tmp_path / "a")
    if read_settings is read_hdf5_settings:
        h5py.File(tmp_path / "a", "w").close()
        with pytest.raises(ValueError, match="file of vectors"):
            read_settings(tmp_path / "a")


@pytest.mark.parametrize(
    "format, extra, name", [("hdf5", "h5", "h5py"), ("parquet", "parquet", "pyarrow")]
)
def test_missing_extra(nlp, text, tmp_path, monkeypatch, format, extra, name):
    monkeypatch.delitem(sys.modules, f"spacy_elmo.lab.embedding.{format}")
    monkeypatch.delattr(f"spacy_elmo.lab.embedding.{format}")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=rf'pip install "spacy-elmo\[{extra}\]"'):
        list(embed_shards(nlp, str(text), tmp_path / "out", format=format))
    assert not (tmp_path / "out").exists()
