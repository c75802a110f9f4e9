"""HTML of the web page `explore`: the files for the server, or a static page about one word."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2

from ...files import atomic_write

_FOLDER = Path(__file__).parent


def live_files() -> dict[str, tuple[str, str]]:
    """Return the files that the web server sends, as {path in the URL: (content, media type)}."""
    page = _template().render(title="Explore", view=None)
    return {
        "": (page, "text/html"),
        "page.css": (_asset("page.css"), "text/css"),
        "page.js": (_asset("page.js"), "text/javascript"),
    }


def save_map(path: Path, view: dict[str, Any], *, title: str, source: str) -> None:
    """Atomically write a static HTML page with 2-D maps of the occurrences of a word. The page needs no
    network.

    Args:
        view: the result of `word_view`.
        title: title of the page.
        source: description of the text and the vectors.

    Raises:
        OSError: the disk is full, or the folder does not exist.
    """
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    page = _template().render(
        title=title,
        view={**view, "title": title, "source": source},
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
    )
    atomic_write(path, page.encode("utf8"))


def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_asset("page.html"))


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf8")


def _digest(text: str) -> str:
    """Return the SHA-256 hash of a script or style sheet in base64, for the content security policy of the
    page."""
    return base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode("ascii")
