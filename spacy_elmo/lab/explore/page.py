"""The web page `explore`: its files for the server, its data about a word, and a static page about one word."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from ...files import atomic_write
from ..contexts import Neighbor, Occurrence, Occurrences, Plane

_FOLDER = Path(__file__).parent
_DIGITS = 3
_CONTEXT = 160
"""Maximum number of characters to show on each side of a word."""
_COLORS = 7
"""Number of senses that have their own color. Rarer senses share one color."""


def live_files() -> dict[str, tuple[str, str]]:
    """Return the files that the web server sends, as {path in the URL: (content, media type)}."""
    page = _template().render(title="Explore", view=None)
    return {
        "": (page, "text/html"),
        "page.css": (_asset("page.css"), "text/css"),
        "page.js": (_asset("page.js"), "text/javascript"),
    }


def save_map(path: Path, view: dict[str, Any], *, title: str, source: str) -> None:
    """Write a static HTML page with 2-D maps of the occurrences of a word, from `word_view`. It needs no network.
    `source` describes the text and the vectors."""
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
    """Return the SHA-256 hash of a script or style sheet for the content security policy of the page."""
    return base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode("ascii")


def word_view(
    corpus: Occurrences,
    queries: Occurrences,
    neighbors: list[list[list[Neighbor]]],
    planes: Sequence[Plane],
) -> dict[str, Any]:
    """Return what the web page `explore` shows about a word, in JSON types: the sentences with the word, and for each
    layer (view) a 2-D map of all occurrences, and the most similar occurrences for each query.

    Args:
        queries: occurrences of the word in the user's own sentences.
        neighbors: the result of `nearest`.
        planes: the maps that the page shows, of the result of `project`.
    """
    number = {id(occurrence): index for index, occurrence in enumerate(corpus.items)}
    views = [corpus.views.index(plane.view) for plane in planes]
    return {
        "sentences": [_sentence(occurrence) for occurrence in corpus.items],
        "queries": [_sentence(query) for query in queries.items],
        "senses": _senses(corpus.items),
        "layers": [
            {
                "name": plane.view,
                "shares": [round(share, _DIGITS) for share in plane.shares],
                "points": _rounded(plane.points),
                "queries": _rounded(plane.queries),
                "neighbors": [
                    [
                        {"use": number[id(near.occurrence)], "cosine": round(near.cosine, _DIGITS)}
                        for near in by_view[view]
                    ]
                    for by_view in neighbors
                ],
            }
            for view, plane in zip(views, planes, strict=True)
        ],
    }


def _sentence(occurrence: Occurrence) -> dict[str, str]:
    left, right = occurrence.left, occurrence.right
    # Cut at a space. Languages such as Chinese have no spaces, so cut anywhere.
    if len(left) > _CONTEXT:
        left = "… " + (left[-_CONTEXT:].partition(" ")[2] or left[-_CONTEXT:])
    if len(right) > _CONTEXT:
        right = (right[:_CONTEXT].rpartition(" ")[0] or right[:_CONTEXT]) + " …"
    return {"left": left, "word": occurrence.word, "right": right, "source": occurrence.source}


def _senses(occurrences: Sequence[Occurrence]) -> dict[str, Any] | None:
    """Return the names of the senses for the legend, most frequent first, and for each occurrence the index
    of its sense. Return None if no occurrence has an annotated sense."""
    counts = Counter(o.sense for o in occurrences if o.sense is not None)
    if not counts:
        return None
    frequent = [sense for sense, _ in counts.most_common(_COLORS)]
    names = [f"{sense} ({counts[sense]})" for sense in frequent]
    if rest := counts.total() - sum(counts[sense] for sense in frequent):
        names.append(f"{len(counts) - _COLORS} other senses ({rest})")
    indices = {sense: index for index, sense in enumerate(frequent)}
    return {
        "names": names,
        "of": [None if o.sense is None else indices.get(o.sense, _COLORS) for o in occurrences],
    }


def _rounded(points: np.ndarray) -> list[list[float]]:
    return points.astype("float64").round(_DIGITS).tolist()
