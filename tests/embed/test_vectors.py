"""Reading vectors back: by number, lazily, and only what is whole."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.corpora.items import Shard
from spacy_elmo.embed.run import embed
from spacy_elmo.embed.shard_file import ShardFile, encode_shard
from spacy_elmo.embed.vectors import open_vectors

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)

PAGE = (Path(__file__).parents[2] / "docs" / "embed.md").read_text(encoding="utf8")


@given(
    tokens=st.lists(st.lists(words, max_size=4), min_size=1, max_size=5),
    layers=st.sampled_from([(), (1,), (3,)]),
    dtype=st.sampled_from([np.float16, np.float32]),
    pooled=st.booleans(),
)
def test_round_trip(tmp_path_factory, tokens, layers, dtype, pooled):
    rows = len(tokens) if pooled else sum(map(len, tokens))
    vectors = np.random.default_rng(0).normal(size=(*layers, rows, 2)).astype(dtype)
    path = tmp_path_factory.mktemp("shard") / "a.safetensors"
    shard = Shard(3, "a.txt", 5, list(tokens))
    path.write_bytes(encode_shard(shard, vectors, tokens, pooled=pooled))
    assert path.read_bytes() == encode_shard(shard, vectors, tokens, pooled=pooled)
    read = ShardFile(path)
    start = 0
    for item, own in enumerate(tokens):
        assert read.tokens(item) == own
        expected = vectors[..., item, :] if pooled else vectors[..., start : start + len(own), :]
        assert read.vectors(item).dtype == dtype
        assert np.array_equal(read.vectors(item), expected)
        start += len(own)
    assert read.metadata["source"] == "a.txt"
    assert (read.metadata["first"], read.metadata["items"]) == (5, len(tokens))


@pytest.fixture
def folder(nlp, text, tmp_path):
    list(embed(nlp, str(text), tmp_path / "out"))
    return tmp_path / "out"


def test_by_number(nlp, text, folder):
    vectors = open_vectors(folder)
    lines = [line.strip() for line in text.read_text().splitlines()]
    assert len(vectors) == len(lines) == 7
    assert len(vectors.files) == 3
    for number, line in enumerate(lines):
        doc = nlp(line)
        assert vectors.tokens(number) == [token.text for token in doc]
        assert vectors[number].shape == doc._.elmo_layers.shape
        assert np.allclose(vectors[number], doc._.elmo_layers, atol=1e-5)
    assert np.array_equal(vectors[-1], vectors[6])
    assert np.array_equal(vectors[np.int64(6)], vectors[6])
    assert [item.shape for item in vectors] == [vectors[n].shape for n in range(7)]
    assert vectors.settings["layers"] == "all"
    for number in (7, -8):
        with pytest.raises(IndexError, match=f"no item {number}; the number of items is 7"):
            vectors[number]


def test_arrays_are_mapped_and_cannot_be_written(folder):
    item = open_vectors(folder)[0]
    assert type(item) is np.ndarray
    assert not item.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        item[:] = 0


def test_no_vectors(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_vectors(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="incomplete.*--resume"):
        open_vectors(tmp_path)
    for index in ("[]", '{"format": "other"}'):
        (tmp_path / "index.json").write_text(index)
        with pytest.raises(ValueError, match="expected the format 'spacy-elmo vectors 1'"):
            open_vectors(tmp_path)


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_truncated_shard(folder, size):
    path = folder / "shard-000000.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match="shard-000000.safetensors is damaged.*--resume"):
        open_vectors(folder)[0]


def test_index_is_plain_json(folder, text):
    index = json.loads((folder / "index.json").read_text())
    assert index["format"] == "spacy-elmo vectors 1"
    assert [shard["first"] for shard in index["shards"]] == [0, 2, 5]
    assert {shard["source"] for shard in index["shards"]} == {str(text)}


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], {})
