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


def test_answers(client, explorer):
    assert client.get("/api/corpus").json == explorer.overview()
    body = {"texts": ["A bank."]}
    answer = client.post("/api/sentences", json=body).json
    assert answer == explorer.answer_sentences(["A bank."])
    word = client.post("/api/word", json={**body, "sentence": 0, "token": 1})
    assert word.json == json.loads(json.dumps(explorer.answer_word(["A bank."], 0, 1)))


@pytest.mark.parametrize(
    "path", ["/", "/page.css", "/page.js", "/api/corpus", "/page.html", "/server.py"]
)
def test_the_files_of_the_page_and_no_others_are_served_without_other_scripts(client, path):
    response = client.get(path)
    assert response.status_code == (404 if path in ("/page.html", "/server.py") else 200)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; " in policy and "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "host, code",
    [("127.0.0.1", 200), ("localhost:8017", 200), ("evil.example", 400), ("127.0.0.1.evil.example", 400), ("", 400)],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/corpus"])
def test_other_hosts_are_refused(client, host, code, path):
    """A page of another site cannot reach the server by another host name (DNS rebinding)."""
    assert client.get(path, headers={"Host": host}).status_code == code


def sentences(*texts):
    return {"json": {"texts": [*texts]}}


@pytest.mark.parametrize(
    "path, options, code, message",
    [
        # Other sites can make a browser send these types, but not JSON.
        *[("sentences", {"data": '{"texts": ["A"]}', "content_type": kind}, 415, "") for kind in ("text/plain", "")],
        ("sentences", {"data": "{", "headers": JSON}, 400, "error"),
        ("sentences", {"json": []}, 400, "list of strings"),
        ("sentences", {"json": {"texts": "A bank."}}, 400, "list of strings"),
        ("sentences", sentences("A", 1), 400, "list of strings"),
        ("sentences", sentences("\ud800"), 400, "surrogates not allowed"),
        ("sentences", sentences("a" * 100_000), 413, ""),
        ("sentences", sentences(*["\U0001f600" * 1000] * 2), 200, ""),
        ("word", sentences("A"), 400, "numbers in `sentence` and `token`"),
        ("word", {"json": {"texts": ["A"], "sentence": True, "token": 0}}, 400, "numbers in `sentence`"),
        ("word", {"json": {"texts": ["A \n b"], "sentence": 0, "token": 1}}, 400, "is whitespace"),
        *[
            ("word", {"json": {"texts": ["A"], "sentence": i, "token": j}}, 400, f"Sentence {i} has no token {j}")
            for i, j in ((0, 1), (0, -1), (1, 0), (-1, 0))
        ],
    ],
)  # fmt: skip
def test_questions(client, path, options, code, message):
    response = client.post(f"/api/{path}", **options)
    assert response.status_code == code and message in response.text


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
