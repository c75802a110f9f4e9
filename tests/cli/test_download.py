"""`python -m spacy elmo download` with a server on this machine; no other server is used."""

import hashlib
import json

import pytest

from spacy_elmo.converters import models
from spacy_elmo.converters.download import folder_of
from tests.commands import elmo
from tests.converters.download.http_server import CONTENT, Server

SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))
    with Server() as server:
        yield server


@pytest.fixture
def catalogue(monkeypatch, tmp_path, server):
    """Return a function that replaces the catalogue by one model, `some`, with given files."""

    def write(files):
        record = {
            "name": "some", "languages": ["xx"], "format": "bilm-hdf5", "parameters": None,
            "licence": "not stated", "about": "Something", "source": "https://host.invalid", "files": files,
        }  # fmt: skip
        path = tmp_path / "models.json"
        path.write_text(json.dumps([record]), "utf8")
        monkeypatch.setattr(models, "FILE", path)
        return tmp_path / "cache" / "some"

    return write


def invoke(*arguments):
    return elmo("download", *arguments)


def files_in(folder):
    """Return the files in a folder, without the checksums of first downloads."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".sha256")
    return sorted(str(path.relative_to(folder)) for path in files)


def test_address(server, tmp_path):
    """A file is downloaded from its URL, without the catalogue."""
    url = server.url("redirect")
    code, output = invoke(url, "--sha256", SHA256)
    path = tmp_path / "cache" / folder_of(url) / "model.zip"
    assert code == 0 and path.read_bytes() == CONTENT
    assert f"SHA-256 {SHA256}, as expected" in output
    assert f"python -m spacy elmo convert auto {path} OUT_FILE" in output


def test_list():
    code, output = invoke()
    assert code == 0
    for text in (
        "en-small",
        "many-langs-CODE: ar bg",
        " zh",
        "13.6M",
        "not stated",
        "download https://host/",
    ):
        assert text in output


def test_list_of_a_language():
    code, output = invoke("--lang", "zh")
    assert code == 0 and "many-langs-zh" in output and "en-small" not in output
    code, output = invoke("--lang", "xyz")
    assert code == 1 and "--lang xyz" in output
    code, output = invoke("en-small", "--lang", "en")
    assert code == 1 and "--lang filters the list" in output


def test_model_of_the_catalogue(catalogue, server):
    urls = [server.url("whole", name) for name in ("options.json", "weights.hdf5")]
    folder = catalogue({urls[0]: None, urls[1]: SHA256})
    code, output = invoke("some")
    assert code == 0
    assert files_in(folder) == ["options.json", "weights.hdf5"]
    assert "Licence: not stated (https://host.invalid)" in output
    assert f"SHA-256 {SHA256}, recorded" in output
    assert "checksum of options.json" in output
    assert "checksum of weights.hdf5" not in output
    assert f"SHA-256 {SHA256}, as expected" in output
    assert output.endswith(f"python -m spacy elmo convert bilm-hdf5 {folder} OUT_FILE --lang xx")
    code, again = invoke("some")
    assert code == 0 and f"SHA-256 {SHA256}, same as at the first download" in again
    assert "checksum of" not in again
    assert len(server.asked) == 2


def test_another_folder(catalogue, server, tmp_path):
    catalogue({server.url("whole"): None})
    code, output = invoke("some", "--dir", tmp_path / "my models")
    assert code == 0
    assert files_in(tmp_path / "my models") == ["some/model.zip"]
    assert f"convert bilm-hdf5 '{tmp_path}/my models/some/model.zip' OUT_FILE" in output
    assert not (tmp_path / "cache").exists()


def test_failure_is_one_message(catalogue, server):
    folder = catalogue({server.url("missing"): None})
    code, output = invoke("some")
    assert code == 1
    assert f"Could not download {server.url('missing')}" in output
    assert "Traceback" not in output
    assert files_in(folder) == []


def test_what_is_whole_is_kept(catalogue, server):
    """If the second of two files fails, the next call does not download the first one again."""
    folder = catalogue({server.url("whole", "options.json"): None, server.url("short"): None})
    assert invoke("some")[0] == 1
    assert files_in(folder) == ["options.json"]
    invoke("some")
    assert server.asked == ["/whole/options.json", "/short/model.zip", "/short/model.zip"]


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["sone"], "no public model 'sone'. Similar names are some."),
        (["ftp://host/model.zip"], "is not a URL"),
        (["some", "--sha256", SHA256], "--sha256 can only be used with the URL"),
        (["https://host.invalid/m.zip", "--sha256", "00"], "'00' (`--sha256`) is not a SHA-256"),
    ],
)
def test_nothing_to_download(catalogue, server, tmp_path, arguments, problem):
    catalogue({server.url("whole"): None})
    code, output = invoke(*arguments)
    assert code == 1
    assert problem in output
    assert server.asked == []
    assert not (tmp_path / "cache").exists()
