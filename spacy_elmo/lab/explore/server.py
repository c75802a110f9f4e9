"""Local web server of the web page `explore`. Only programs on this machine can reach the server."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from waitress.server import BaseWSGIServer, create_server
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

from .explorer import MAX_CHARACTERS, MAX_SENTENCES, Answer, Explorer
from .page import live_files

HOST = "127.0.0.1"
_HEADERS = {
    # The browser only runs the page's own script, and sends nothing to other servers.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# JSON needs at most 12 bytes for a character: 6 for each half of a surrogate pair.
_MAX_BYTES = MAX_SENTENCES * MAX_CHARACTERS * 12 + 1_000


def make_app(explorer: Explorer) -> Flask:
    """Return a Flask application that serves the web page `explore`.

    It refuses requests with an unknown host name, because another website could otherwise send requests through a
    host name that resolves to this machine.
    """
    app = Flask(__name__, static_folder=None)
    app.config.update(TRUSTED_HOSTS=[HOST, "localhost"], MAX_CONTENT_LENGTH=_MAX_BYTES)
    for name, file in live_files().items():
        app.add_url_rule(f"/{name}", view_func=_file_view(*file), endpoint=f"file {name}")
    app.add_url_rule("/api/corpus", view_func=explorer.overview, endpoint="corpus")
    for name, answer in (("sentences", _sentences), ("word", _word)):
        view = _json_view(explorer, answer)
        app.add_url_rule(f"/api/{name}", view_func=view, endpoint=name, methods=["POST"])
    app.register_error_handler(HTTPException, _http_error)
    app.after_request(_with_headers)
    return app


def listen(port: int) -> socket.socket:
    """Reserve a port on 127.0.0.1; 0: any free port."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise OSError(
            f"Port {port} cannot be used ({error}). Choose another port (`--port`), or 0 for any free port"
        ) from error


def make_server(explorer: Explorer, listening: socket.socket) -> BaseWSGIServer:
    """Return a web server at the port that `listen` has reserved. The server processes one request at a time."""
    # Do not warn if a question has to wait for another one.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    # One thread suffices, because an answer uses a whole core. Slow clients do not block it: waitress buffers them.
    return create_server(
        make_app(explorer),
        sockets=[listening],
        threads=1,
        max_request_body_size=_MAX_BYTES,
        ident=None,
    )


def _file_view(content: str, media_type: str) -> Callable[[], Response]:
    return lambda: Response(content, mimetype=media_type)


def _json_view(
    explorer: Explorer, answer: Callable[[Explorer, dict[str, Any]], Answer]
) -> Callable[[], Answer | tuple[Answer, int]]:
    def view() -> Answer | tuple[Answer, int]:
        # Other pages in the browser can send forms and plain text to this server, but not this type.
        if request.mimetype != "application/json":
            raise UnsupportedMediaType("Send application/json")
        try:
            return answer(explorer, request.get_json())
        except (ValueError, RecursionError) as error:  # deeply nested JSON
            return {"error": str(error)}, 400

    return view


def _sentences(explorer: Explorer, body: object) -> Answer:
    return explorer.answer_sentences(_texts(body))


def _word(explorer: Explorer, body: Any) -> Answer:
    texts = _texts(body)
    numbers = [body.get("sentence"), body.get("token")]
    if any(type(number) is not int for number in numbers):
        raise ValueError(f"Expected numbers in `sentence` and `token`, but got {numbers}")
    return explorer.answer_word(texts, *numbers)


def _texts(body: object) -> list[str]:
    texts = body.get("texts") if isinstance(body, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("Expected an object with a list of strings in `texts`")
    for text in texts:
        text.encode()  # raises ValueError for an unpaired surrogate
    return texts


def _http_error(error: HTTPException) -> tuple[Answer, int]:
    return {"error": error.description or error.name}, error.code or 500


def _with_headers(response: Response) -> Response:
    response.headers.update(_HEADERS)
    return response
