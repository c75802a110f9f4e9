"""Digests: known values, and no change of a description or of its files goes unnoticed."""

import hashlib
import json

import pytest

from spacy_elmo.digest import Digest, check_digests, file_digest, json_digest, with_digests

EMPTY = "99aa06d3014798d86001c324468d497f"
"""XXH3 of no bytes, from the test vectors of xxHash."""


def test_algorithm(tmp_path):
    (tmp_path / "empty").touch()
    assert Digest(b"").hexdigest() == EMPTY == file_digest(tmp_path / "empty")
    assert len(Digest(b"a").digest()) == 16


def test_a_file_of_several_blocks(tmp_path):
    content = bytes(range(256)) * 10_000
    (tmp_path / "a").write_bytes(content)
    assert file_digest(tmp_path / "a") == Digest(content).hexdigest()
    published = hashlib.sha256(content).hexdigest()
    assert file_digest(tmp_path / "a", hashlib.sha256()) == published


def test_the_order_of_keys_does_not_matter():
    assert json_digest({"a": 1, "b": [2]}) == json_digest({"b": [2], "a": 1})
    assert len({json_digest(value) for value in ({}, [], "", None, 0, [0], ["0"], {"0": 0})}) == 8


@pytest.fixture
def path(tmp_path):
    (tmp_path / "data").write_bytes(b"12")
    content = with_digests({"format": "x 1", "n": 3}, tmp_path / "x.json", ["data"])
    (tmp_path / "x.json").write_text(json.dumps(content))
    return tmp_path / "x.json"


def read(path):
    content = json.loads(path.read_text())
    check_digests(content, path, ["data"])
    return content


def test_unchanged_files(path):
    content = read(path)
    assert content.pop("digests").keys() == {"data", "x.json"}
    assert content == {"format": "x 1", "n": 3}


@pytest.mark.parametrize(
    "before, after",
    [
        ('"n": 3', '"n": 4'), ('"n"', '"m"'), ("x 1", "x 2"), ('"digests"', '"dIgests"'), ('"data"', '"date"'),
        ('"x.json"', '"y.json"'), ('"n": 3, ', ""),
    ],
)  # fmt: skip
def test_a_changed_entry(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(ValueError, match="(x.json|data) has changed since it was written"):
        read(path)


@pytest.mark.parametrize("digests", [None, [], "x", {}, 1])
def test_digests_of_a_wrong_type(path, digests):
    path.write_text(json.dumps({**read(path), "digests": digests}))
    with pytest.raises(ValueError, match="x.json has changed"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"13", b"123"])
def test_a_changed_file(path, content):
    (path.parent / "data").write_bytes(content)
    with pytest.raises(ValueError, match="data has changed"):
        read(path)


def test_a_missing_file(path):
    (path.parent / "data").unlink()
    with pytest.raises(FileNotFoundError, match="data"):
        read(path)
