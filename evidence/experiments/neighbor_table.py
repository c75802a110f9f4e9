"""The uses of a word that are nearest to those in the queries, from the file of `spacy elmo neighbors --out`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from spacy_elmo.analysis.contexts.occurrences import Occurrence

from .tables import Table


def neighbor_table(folder: Path) -> Table | None:
    """Return the nearest use of each sentence's word in each layer; cf. table 4 of the paper. None: no
    neighbors.json, or no sentence in it."""
    path = folder / "neighbors.json"
    found = json.loads(path.read_text("utf8")) if path.is_file() else {"queries": []}
    if not found["queries"]:
        return None
    rows = [
        [_excerpt(query), view, f"{near['cosine']:.2f}", _excerpt(near)]
        for query in found["queries"]
        for view, (near, *_) in query["neighbors"].items()
    ]
    sources = dict.fromkeys(use["source"] for use in found["occurrences"])
    caption = f"Of {len(found['occurrences']):,} uses in {', '.join(sources)}, the one with the most similar vector"
    return Table(caption, ["sentence", "vectors", "cosine", "nearest use"], rows)


def _excerpt(record: dict[str, Any]) -> str:
    names = (field.name for field in dataclasses.fields(Occurrence))
    return Occurrence(**{name: record[name] for name in names}).excerpt()
