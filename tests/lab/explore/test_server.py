"""The server answers valid requests and refuses others."""

import http.client
import json
import threading

import pytest

from spacy_elmo.lab.explore.server import listen, make_app, make_server

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client(explorer):
    return make_app(explorer).test_client()


def post(client, path, body, **options):
    return client.post(f"/api/{path}", json=body, **options)


def test_answers(client, explorer):
    assert client.get("/api/corpus").json == explorer.overview()
    body = {"texts": ["A bank."]}
    assert post(client, "sentences", body).json == explorer.answer_sentences(["A bank."])
    word = post(client, "word", {**body, "sentence": 0, "token": 1})
    assert word.json == json.loads(json.dumps(explorer.answer_word(["A bank."], 0, 1)))


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js", "/api/corpus", "/nothing"])
def test_every_answer_forbids_other_scripts(client, path):
    response = client.get(path)
    assert response.status_code == (404 if path == "/nothing" else 200)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; " in policy and "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1]", ""])
@pytest.mark.parametrize("path", ["/", "/page.js", "/api/corpus", "/api/word"])
def test_other_hosts_are_refused(client, host, path):
    """A page of another site cannot reach the server by another host name (DNS rebinding)."""
    assert client.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8017", "localhost:8017"])
def test_this_host_is_fine(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_is_read(client, kind):
    """Other sites can make a browser send these types, but not JSON."""
    data = json.dumps({"texts": ["A bank."]})
    assert client.post("/api/sentences", data=data, content_type=kind).status_code == 415


@pytest.mark.parametrize("name", ["page.html", "server.py", "..%2fabout.py", "__init__.py"])
def test_no_other_file_is_served(client, name):
    assert client.get(f"/{name}").status_code == 404


@pytest.mark.parametrize(
    "path, body, message",
    [
        ("sentences", [], "list of strings"),
        ("sentences", {"texts": "A bank."}, "list of strings"),
        ("sentences", {"texts": ["A", 1]}, "list of strings"),
        ("sentences", {"texts": ["\ud800"]}, "surrogates not allowed"),
        ("word", {"texts": ["A"]}, "numbers in `sentence` and `token`"),
        ("word", {"texts": ["A"], "sentence": True, "token": 0}, "numbers in `sentence`"),
        ("word", {"texts": ["A"], "sentence": 0, "token": 1}, "no token 1"),
    ],
)
def test_bad_questions(client, path, body, message):
    response = post(client, path, body)
    assert response.status_code == 400 and message in response.json["error"]


def test_what_is_no_json(client):
    response = client.post("/api/sentences", data="{", headers=JSON)
    assert response.status_code == 400 and response.json["error"]


def test_size(client):
    assert post(client, "sentences", {"texts": ["a" * 100_000]}).status_code == 413
    assert post(client, "sentences", {"texts": ["\U0001f600" * 1000] * 2}).status_code == 200


@pytest.fixture
def server(explorer):
    server = make_server(explorer, listen(0))
    threading.Thread(target=server.run, daemon=True).start()
    return server


def test_server(server, explorer):
    assert server.effective_host == "127.0.0.1"
    connection = http.client.HTTPConnection("127.0.0.1", server.effective_port, timeout=30)
    connection.request("GET", "/")
    response = connection.getresponse()
    assert response.status == 200 and b'<script src="page.js" defer>' in response.read()
    connection.request("POST", "/api/sentences", b"x" * 100_000, JSON)
    assert connection.getresponse().status == 413
    with pytest.raises(OSError, match="cannot be used .* 0 "):
        listen(int(server.effective_port))
