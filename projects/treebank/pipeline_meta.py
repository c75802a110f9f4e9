"""Write the meta.json of a pipeline for its package: the scores on a test part, the licence, and what it learned from.

    python pipeline_meta.py training/NAME/model-best training/NAME/test.json meta.json \
        --treebank "UD_Latin-UDante" --licence "CC BY-SA 4.0"

`spacy train` leaves the scores on the development part in a pipeline; whoever installs it should read those on a part
that decided nothing. `spacy package --meta-path` takes the file, and makes the README of the package from it.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def package_meta(
    meta: Mapping[str, Any], scores: Mapping[str, Any], treebank: str, licence: str
) -> dict[str, Any]:
    """Return the meta of a pipeline with other scores, its licence and its treebank.

    Args:
        meta: as in the pipeline's meta.json; its sources stay.
        scores: as `spacy evaluate --output` writes them; speed is left out, because it is that of a machine.
        treebank: name of the treebank, with its source.
        licence: that of the treebank, which binds the pipeline beside that of the biLM, which is in `meta`.
    """
    licences = dict.fromkeys(filter(None, [meta.get("license"), licence]))
    performance = {name: score for name, score in scores.items() if name != "speed"}
    sources = [*(meta.get("sources") or []), {"name": treebank, "license": licence}]
    return {**meta, "performance": performance, "license": ", ".join(licences), "sources": sources}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    parser.add_argument("scores", type=Path, metavar="SCORES.json")
    parser.add_argument("out", type=Path, metavar="META.json")
    parser.add_argument("--treebank", required=True, help="its name and source")
    parser.add_argument("--licence", required=True, help="licence of the treebank")
    args = parser.parse_args()
    try:
        meta, scores = (
            json.loads(path.read_text("utf8"))
            for path in (args.pipeline / "meta.json", args.scores)
        )
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    if not args.licence:
        raise SystemExit("--licence is empty: give that of the treebank, such as CC BY-SA 4.0")
    written = package_meta(meta, scores, args.treebank, args.licence)
    args.out.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n", "utf8")


if __name__ == "__main__":
    main()
