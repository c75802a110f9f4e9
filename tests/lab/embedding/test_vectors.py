"""Vectors are read back by number and lazily, and only if they are complete."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_elmo.digest import with_digests
from spacy_elmo.lab.corpora.items import Shard
from spacy_elmo.lab.embedding.embed_corpus import embed_shards
from spacy_elmo.lab.embedding.shard_file import ShardFile, encode_shard
from spacy_elmo.lab.embedding.vectors import open_vectors

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)

PAGE = (Path(__file__).parents[3] / "docs" / "embed.md").read_text(encoding="utf8")


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
    list(embed_shards(nlp, str(text), tmp_path / "out"))
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
        with pytest.raises(IndexError, match=f"no item {number}: .* 7"):
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
    for index, problem in (
        ("[]", "must contain a JSON object, but contains"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"format": "other"}', "expected the format 'spacy-elmo vectors 1'"),
    ):
        (tmp_path / "index.json").write_text(index)
        with pytest.raises(ValueError, match=f"index.json.*{problem}"):
            open_vectors(tmp_path)


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_truncated_shard(folder, size):
    path = folder / "shard-000000.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match="shard-000000.safetensors is damaged.*--resume"):
        open_vectors(folder)[0]


def used(folder):
    """Read everything that a folder of vectors offers."""
    vectors = open_vectors(folder)
    return [(vectors[n].tobytes(), vectors.tokens(n)) for n in range(len(vectors))], vectors.files


@pytest.mark.parametrize("name", ["shard-000001.safetensors", "index.json"])
def test_any_changed_bit_is_detected(folder, name):
    expected = used(folder)
    content = (folder / name).read_bytes()
    positions = {*range(0, len(content), max(1, len(content) // 150)), *range(0, 120, 3)}
    for position in positions:
        for bit in (0, 5):
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            (folder / name).write_bytes(changed)
            try:
                assert used(folder) == expected  # only white space between tensors or in JSON
            except ValueError as error:
                assert str(folder) in str(error)
    (folder / name).write_bytes(content)
    changed = bytearray(content)
    changed[-10] ^= 1
    (folder / name).write_bytes(changed)
    with pytest.raises(ValueError, match="is damaged|has changed since"):
        used(folder)


def sealed(folder, index):
    """Write an index with the correct digest."""
    path = folder / "index.json"
    del index["digests"]
    path.write_text(json.dumps(with_digests(index, path)))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["shard-000001.safetensors", "index.json"]),
    changes=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=5),
    cut=st.none() | st.floats(0, 0.999),
)
def test_a_mutated_folder_is_one_message(folder, name, changes, cut):
    content = (folder / name).read_bytes()
    changed = bytearray(content)
    for position, value in changes:
        changed[int(position * len(changed))] = value
    (folder / name).write_bytes(changed[: None if cut is None else int(cut * len(changed))])
    try:
        used(folder)
    except ValueError as error:
        assert str(folder) in str(error)
    finally:
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "shard-" + "0" * 300 + ".safetensors",
        "shard-000001.safetensors",
        "../shard-000000.safetensors",
    ],
)
def test_name_of_another_shard(folder, name):
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0]["file"] = name
    sealed(folder, index)
    with pytest.raises(
        ValueError, match=r"index.json is damaged: .* is not a valid entry for shard"
    ):
        open_vectors(folder)


@pytest.mark.parametrize("value", [-1, 1 << 48, 10**30])
@pytest.mark.parametrize("name", ["items", "rows"])
def test_numbers_that_no_shard_has(folder, name, value):
    index = json.loads((folder / "index.json").read_text())
    index["shards"][-1][name] = value
    sealed(folder, index)
    with pytest.raises(
        ValueError, match=r"index.json is damaged: .* is not a valid entry for shard"
    ):
        open_vectors(folder)


def test_files_without_digests_are_refused(folder):
    index = json.loads((folder / "index.json").read_text())
    del index["digests"]
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="index.json .* Run `embed` again"):
        open_vectors(folder)


def test_a_shard_without_a_checksum_is_refused(folder):
    path = folder / "shard-000000.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = re.sub(rb', \\"checksum\\": \\"\w+\\"', b"", content[8 : 8 + size])
    assert b"checksum" not in header
    path.write_bytes(content[:8] + header.ljust(size) + content[8 + size :])
    with pytest.raises(ValueError, match="shard-000000.safetensors is damaged"):
        used(folder)


def test_shards_are_verified_once_and_on_demand(folder, monkeypatch):
    verified = []
    monkeypatch.setattr(ShardFile, "verify", lambda shard: verified.append(shard.path.name))
    vectors = open_vectors(folder)
    for number in (0, 1, 0, 3):
        vectors[number]
    vectors.shard(0)
    assert verified == ["shard-000000.safetensors", "shard-000001.safetensors"]
    open_vectors(folder, verify=False)[0]
    assert len(verified) == 2


def test_a_shard_of_another_index_is_refused(folder):
    (folder / "shard-000001.safetensors").replace(folder / "shard-000000.safetensors")
    with pytest.raises(
        ValueError, match=r"shard-000000.safetensors does not belong to .*index\.json"
    ):
        open_vectors(folder)[0]


def test_index_is_plain_json(folder, text):
    index = json.loads((folder / "index.json").read_text())
    assert index["format"] == "spacy-elmo vectors 1"
    assert [shard["first"] for shard in index["shards"]] == [0, 2, 5]
    assert {shard["source"] for shard in index["shards"]} == {str(text)}


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], {})
