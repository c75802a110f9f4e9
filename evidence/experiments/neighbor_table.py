"""Table of the uses of words that are nearest to the queries, from the file of `spacy elmo neighbors --out`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from spacy_elmo.lab.contexts import Occurrence

from .tables import Table


def neighbor_table(folder: Path) -> Table | None:
    """Return a table with the nearest use of each query's word in each layer (as table 4 of the paper); None if the
    folder has no neighbors.json, or if it has no queries."""
    path = folder / "neighbors.json"
    found = json.loads(path.read_text("utf8")) if path.is_file() else {"queries": []}
    if not found["queries"]:
        return None
    rows = [
        [_excerpt(query), view, f"{near['cosine']:.2f}", _excerpt(near)]
        for query in found["queries"]
        for view, (near, *_) in query["neighbors"].items()
    ]
    sources = dict.fromkeys(use["source"].rpartition(":")[0] for use in found["occurrences"])
    caption = f"Of {len(found['occurrences']):,} uses in {', '.join(sources)}, the one with the most similar vector"
    return Table(caption, ["sentence", "vectors", "cosine", "nearest use"], rows)


def _excerpt(record: dict[str, Any]) -> str:
    names = (field.name for field in dataclasses.fields(Occurrence))
    return Occurrence(**{name: record[name] for name in names}).excerpt()
