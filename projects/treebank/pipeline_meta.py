"""Write the meta.json of a pipeline for its package, with scores on a test part, the licence and the treebank.

    python pipeline_meta.py training/NAME/model-best training/NAME/test.json meta.json \
        --treebank "UD_Latin-UDante" --licence "CC BY-SA 4.0"

`spacy train` stores the scores on the development part in a pipeline. Users of the package need the scores on a test
part, because the development part was used for choices. Pass the file to `spacy package --meta-path`, which also writes
the README of the package from it.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def package_meta(
    meta: Mapping[str, Any], scores: Mapping[str, Any], treebank: str, licence: str
) -> dict[str, Any]:
    """Return the meta of a pipeline with new scores, and with the licence and the name of its treebank.

    Args:
        meta: the content of the pipeline's meta.json. Its sources are kept.
        scores: the output of `spacy evaluate --output`. The speed is left out, because it depends on the machine.
        treebank: name of the treebank, with its source.
        licence: licence of the treebank. It applies to the pipeline in addition to the licence in `meta`, which is that
            of the biLM.
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
    parser.add_argument("--treebank", required=True, help="name and source of the treebank")
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
        raise SystemExit("--licence is empty: set the treebank's licence, such as CC BY-SA 4.0")
    written = package_meta(meta, scores, args.treebank, args.licence)
    args.out.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n", "utf8")


if __name__ == "__main__":
    main()
