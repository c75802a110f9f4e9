"""Digests: known values."""

import hashlib

from spacy_elmo.digest import Digest, file_digest

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
    assert file_digest(tmp_path / "a", hashlib.sha256) == published
