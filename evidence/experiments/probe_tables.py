"""Tables of the probes, from the files of `spacy elmo probe --out`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .tables import Table


def sense_table(folder: Path) -> Table | None:
    """Return the scores of word senses in each layer (table 5 of the paper); None if there is no word-sense.json."""
    found = _read(folder / "word-sense.json")
    if found is None:
        return None
    files = {Path(name).stem: scores for name, scores in found["files"].items()}
    columns = {**files, "all": found}
    rows = [
        [f"layer {layer}", *(_percent(scores["layers"][layer]) for scores in columns.values())]
        for layer in range(len(found["layers"]))
    ]
    frequent = (_percent(scores["most_frequent"]) for scores in columns.values())
    rows.append(["most frequent sense in training", *frequent])
    unseen = "have no answer here; the paper gives them the first sense"
    if found["first"]:
        first = (_percent(scores["first"]) for scores in columns.values())
        rows.append(["first sense of WordNet", *first])
        unseen = "get the first sense, as in the paper"
    caption = (
        f"Word senses by nearest neighbour: F1 in percent, {found['instances']:,} words, of which"
        f" {found['ambiguous']:,} have several senses in training; words that do not occur in training {unseen}"
    )
    return Table(caption, ["vectors", *columns], rows)


def tag_table(folder: Path) -> Table | None:
    """Return the scores of parts of speech in each layer (table 6 of the paper); None if there is no
    part-of-speech.json."""
    found = _read(folder / "part-of-speech.json")
    if found is None:
        return None
    rows = [[f"layer {layer}", _percent(share)] for layer, share in enumerate(found["layers"])]
    rows.append(["most frequent tag", _percent(found["most_frequent"])])
    caption = (
        f"Parts of speech by a linear classifier: accuracy in percent, {found['words']:,} words,"
        f" {found['tags']} tags"
    )
    return Table(caption, ["vectors", "accuracy"], rows)


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf8")) if path.is_file() else None


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
