"""Downloads from a server on this machine are complete, or leave nothing, whatever the server does."""

import hashlib
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_elmo.converters import download
from spacy_elmo.converters.download import cache_folder, fetch, first_checksum, folder_of, sha256_of
from spacy_elmo.converters.models import RemoteFile
from tests.converters.download.http_server import CONTENT

SHA256 = hashlib.sha256(CONTENT).hexdigest()


def files_in(folder):
    """Return the files in a folder, without the checksums of first downloads."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".sha256")


@pytest.mark.parametrize("way", ["whole", "redirect"])
@pytest.mark.parametrize("sha256", [None, SHA256, SHA256.upper()])
def test_whole_file(server, tmp_path, way, sha256):
    path = fetch(RemoteFile(server.url(way), sha256), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "model.zip"
    assert files_in(tmp_path) == [path]
    assert path.read_bytes() == CONTENT
    assert sha256_of(path) == SHA256


def test_second_time_asks_nobody(server, tmp_path):
    for sha256 in (None, SHA256, None):
        fetch(RemoteFile(server.url("whole"), sha256), tmp_path)
    assert server.asked == ["/whole/model.zip"]


@pytest.mark.parametrize(
    "way, problem",
    [
        ("missing", "404"),
        ("short", "IncompleteRead"),
        ("chunked", "InvalidChunkLength|prematurely"),
        ("reset", "reset|IncompleteRead"),
        ("silent", "timed out"),
        ("mute", "timed out"),
        ("circle", "redirects"),
    ],
)
def test_failure_leaves_nothing(server, tmp_path, monkeypatch, way, problem):
    monkeypatch.setattr(download, "_SECONDS_OF_SILENCE", 0.3)
    url = server.url(way)
    with pytest.raises(OSError, match=problem) as error:
        fetch(RemoteFile(url), tmp_path)
    assert str(error.value).startswith(f"Could not download {url}, ")
    assert files_in(tmp_path) == []
    # The next try is a new one.
    fetch(RemoteFile(server.url("whole")), tmp_path)
    assert (tmp_path / "model.zip").read_bytes() == CONTENT


def test_nobody_listens(server, tmp_path):
    url = server.url("whole")
    server.server_close()
    server.shutdown()
    with pytest.raises(OSError, match="Could not download"):
        fetch(RemoteFile(url), tmp_path)
    assert files_in(tmp_path) == []


def test_wrong_checksum(server, tmp_path):
    with pytest.raises(ValueError, match=f"model.zip: .* {'0' * 64}, .* {SHA256}"):
        fetch(RemoteFile(server.url("whole"), "0" * 64), tmp_path)
    assert files_in(tmp_path) == []


def test_file_of_another_checksum_is_replaced_by_a_right_one_only(server, tmp_path):
    (tmp_path / "model.zip").write_bytes(b"older")
    with pytest.raises(ValueError, match="expected the SHA-256"):
        fetch(RemoteFile(server.url("whole"), "0" * 64), tmp_path)
    assert (tmp_path / "model.zip").read_bytes() == b"older"
    fetch(RemoteFile(server.url("whole"), SHA256), tmp_path)
    assert (tmp_path / "model.zip").read_bytes() == CONTENT


def test_two_at_once(server, tmp_path):
    """The server answers no request before both have arrived."""
    file = RemoteFile(server.url("together"), SHA256)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(fetch, [file, file], [tmp_path, tmp_path]))
    assert server.asked == ["/together/model.zip"] * 2
    assert paths == files_in(tmp_path) * 2
    assert paths[0].read_bytes() == CONTENT


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SPACY_ELMO_CACHE")
    assert "spacy-elmo" in cache_folder().parts
    assert cache_folder().is_relative_to(Path.home())


def test_same_name_at_two_addresses():
    assert folder_of("https://host/a/model.zip") != folder_of("https://host/b/model.zip")
    assert folder_of("https://host/a/model.zip") == folder_of("https://host/a/model.zip")


def test_without_the_extra(monkeypatch):
    monkeypatch.delenv("SPACY_ELMO_CACHE", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(ValueError, match=r'pip install "spacy-elmo\[download\]".*SPACY_ELMO_CACHE'):
        cache_folder()


def test_another_file_than_at_the_first_download(server, tmp_path):
    file = RemoteFile(server.url("whole"))
    path = fetch(file, tmp_path)
    assert first_checksum(path) == SHA256
    path.write_bytes(b"damaged")
    fetch(file, tmp_path)
    assert path.read_bytes() == CONTENT
    path.unlink()
    with pytest.raises(ValueError, match=f"/other/model.zip .* {SHA256}"):
        fetch(RemoteFile(server.url("other")), tmp_path)
    assert files_in(tmp_path) == []
    (tmp_path / ".model.zip.sha256").unlink()
    assert fetch(RemoteFile(server.url("other")), tmp_path).read_bytes() == CONTENT[::-1]


def test_a_given_checksum_replaces_that_of_the_first_download(server, tmp_path):
    fetch(RemoteFile(server.url("whole")), tmp_path)
    changed = CONTENT[::-1]
    fetch(RemoteFile(server.url("other"), hashlib.sha256(changed).hexdigest()), tmp_path)
    path = fetch(RemoteFile(server.url("other")), tmp_path)
    assert path.read_bytes() == changed
    stored = path.with_name(f".{path.name}.sha256")
    written = stored.stat().st_mtime_ns
    fetch(RemoteFile(server.url("other"), hashlib.sha256(changed).hexdigest().upper()), tmp_path)
    assert stored.stat().st_mtime_ns == written


def test_a_file_of_an_earlier_version_gets_its_checksum(server, tmp_path):
    (tmp_path / "model.zip").write_bytes(b"older")
    fetch(RemoteFile(server.url("whole")), tmp_path)
    assert server.asked == []
    assert first_checksum(tmp_path / "model.zip") == hashlib.sha256(b"older").hexdigest()


def test_bytes_are_counted_after_decompression(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(ValueError, match="/gzip/model.zip .* 1,279,999 bytes"):
        fetch(RemoteFile(server.url("gzip")), tmp_path)
    assert files_in(tmp_path) == []
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT))
    assert fetch(RemoteFile(server.url("gzip")), tmp_path).read_bytes() == CONTENT


def test_a_download_is_flushed_to_disk(server, tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append(os.fstat(number).st_mode))
    fetch(RemoteFile(server.url("whole")), tmp_path)
    assert [stat.S_ISDIR(mode) for mode in flushed[:2]] == [False, True]
