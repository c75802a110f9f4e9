"""Write the meta.json of a pipeline for its package: scores on test sets, licences and sources.

    python pipeline_meta.py PIPELINE META.json --scores treebank.json names.json \
        --source UD_English-EWT "CC BY-SA 4.0" --source WikiGold "CC BY 4.0" --card card.json

`spacy train` writes the scores on the development set to the pipeline. The package states scores on test sets, which
were not used for any choice. `spacy package --meta-path` reads the file and makes the README of the package from it.
`card.json` has fields of the meta that are the same for each training, such as `description`, `author` and `notes`.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly


def package_meta(
    meta: Mapping[str, Any],
    scores: Sequence[Mapping[str, Any]],
    sources: Sequence[tuple[str, str]],
    card: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the meta of a pipeline with the scores on its test sets, its licences and its sources.

    Args:
        meta: content of the pipeline's meta.json. Its licence and its sources, those of the biLM, are kept.
        scores: results of `spacy evaluate --output`. A score that one test set does not measure is taken from the next.
            The speed is left out, because it depends on the machine.
        sources: the name and the licence of each labelled set.
        card: more fields, such as `description`. They replace fields of `meta`, but not scores, licences and sources.
    """
    performance: dict[str, Any] = {}
    for measured in scores:
        for name, score in measured.items():
            if name != "speed" and performance.get(name) is None:
                performance[name] = score
    licences = dict.fromkeys(
        filter(None, [meta.get("license"), *(licence for _, licence in sources)])
    )
    sets = [{"name": name, "license": licence} for name, licence in sources]
    return {
        **meta,
        **card,
        "performance": performance,
        "license": ", ".join(licences),
        # spaCy would write the version that trained the pipeline as the oldest one.
        "spacy_version": ">=3.8.0,<3.9.0",
        "sources": [*(meta.get("sources") or []), *sets],
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    parser.add_argument("out", type=Path, metavar="META.json")
    parser.add_argument(
        "--scores", type=Path, nargs="+", required=True, help="results of spacy evaluate"
    )
    parser.add_argument(
        "--source", nargs=2, action="append", required=True, metavar=("NAME", "LICENCE"),
        help="a labelled set and its licence",
    )  # fmt: skip
    parser.add_argument(
        "--card", type=Path, metavar="CARD.json",
        help="further fields of the meta, such as description and notes (default: none)",
    )  # fmt: skip
    args = parser.parse_args()
    meta, *scores = map(srsly.read_json, [args.pipeline / "meta.json", *args.scores])
    card = srsly.read_json(args.card) if args.card else {}
    srsly.write_json(args.out, package_meta(meta, scores, args.source, card))


if __name__ == "__main__":
    main()
