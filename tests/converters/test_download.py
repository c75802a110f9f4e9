"""The catalogue of models, and downloads from a server on this machine: complete, or nothing is left."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spacy_elmo.converters import download
from spacy_elmo.converters.convert import FORMATS
from spacy_elmo.converters.download import CATALOGUE, fetch, find_model, known_models

CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Handler of `/WAY/NAME`. WAY decides how CONTENT is sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        _, way, _ = self.path.split("/")
        if way == "missing":
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if way == "whole" else CONTENT[: len(CONTENT) // 2])
            self.wfile.flush()
            if way == "silent":
                self.server.closing.wait(10)
            self.close_connection = way != "whole"

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Context manager that serves in a separate thread."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.closing = threading.Event()

    def url(self, way, name="model.zip"):
        return f"http://127.0.0.1:{self.server_port}/{way}/{name}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Ignore clients that close the connection."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with Server() as server:
        yield server


@pytest.mark.parametrize("sha256", [None, SHA256, SHA256.upper()])
def test_whole_file(server, tmp_path, sha256):
    """It is downloaded once."""
    for _ in range(2):
        path = fetch(server.url("whole"), sha256, tmp_path / "new" / "folder")
        assert path == tmp_path / "new" / "folder" / "model.zip"
        assert [*path.parent.iterdir()] == [path] and path.read_bytes() == CONTENT
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "way, problem",
    [("missing", "404"), ("short", "IncompleteRead"), ("silent", "timed out")],
)
def test_failure_leaves_nothing(server, tmp_path, monkeypatch, way, problem):
    monkeypatch.setattr(download, "_SECONDS_OF_SILENCE", 0.3)
    with pytest.raises(ValueError, match=f"^Could not download {server.url(way)}, .*{problem}"):
        fetch(server.url(way), None, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_wrong_checksum(server, tmp_path):
    with pytest.raises(ValueError, match=f"model.zip: expected the SHA-256 00, but got {SHA256}"):
        fetch(server.url("whole"), "00", tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model.zip").write_bytes(b"older")
    with pytest.raises(ValueError, match=f"{tmp_path}/model.zip: expected the SHA-256"):
        fetch(server.url("whole"), SHA256, tmp_path)


def test_catalogue():
    models = known_models()
    assert len(json.loads(CATALOGUE.read_text("utf8"))) == len(models)  # no name occurs twice
    for name, model in models.items():
        assert model.format in FORMATS and model.licence and model.about, name
        names = {url.rpartition("/")[2] for url in model.files}
        assert names and len(names) == len(model.files), name
        assert set(model.options.values()) <= names, name
        assert all(url.startswith("https://") for url in model.files), name
    for name, number in {"ar": 136, "en": 144, "ja": 160, "nl": 164, "nb": 165, "zh": 179}.items():
        assert f"{number}.zip" in str(models[f"many-langs-{name}"].files)


def test_find_model():
    assert find_model("en-small").languages == ["en"]
    with pytest.raises(ValueError, match="'en-smal'. Similar names are en-small"):
        find_model("en-smal")
