"""Held-out perplexity of weights for each source of the text, for a model card.

    python scripts/perplexity_by_domain.py model-best.safetensors heldout.txt heldout-documents.tsv --tokenized

Blank lines separate the documents of the text. The .tsv file has a header and a row for each document, in the same
order, with a column `source`. The program prints rows for evidence/scores/perplexity.jsonl, largest source first.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Prepare
from spacy_elmo.pretraining.perplexity import NOTHING, Perplexity, evaluate


def by_source(
    weights: Weights, text: Path, table: Path, settings: Prepare
) -> dict[str, Perplexity]:
    """Compute the perplexity of each source, largest source first, and of all text under the key "all"."""
    documents = [part for part in text.read_text(encoding="utf8").split("\n\n") if part.strip()]
    with table.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    sources = defaultdict(list)
    for row, document in zip(rows, documents, strict=True):
        sources[row["source"]].append(document)
    size, total = len(weights.vocabulary), NOTHING
    scores = {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "source.txt"
        for source, parts in sources.items():
            file.write_text("\n\n".join(parts), encoding="utf8")
            tally = evaluate(weights, [file], settings)
            scores[source] = tally.perplexity(size)
            total += tally
    ordered = sorted(scores.items(), key=lambda item: -item[1].targets)
    return {**dict(ordered), "all": total.perplexity(size)}


def main() -> None:
    """Compute the perplexities and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("text", type=Path, help="plain text with blank lines between documents")
    parser.add_argument("documents", type=Path, help=".tsv file with a column `source`")
    parser.add_argument(
        "--tokenized", action="store_true", help="a line is a sentence, with spaces between words"
    )
    args = parser.parse_args()
    weights = Weights.load(args.weights)
    settings = Prepare(tokenized=True) if args.tokenized else Prepare.of_card(weights.card)
    for source, p in by_source(weights, args.text, args.documents, settings).items():
        scores = {"targets": p.targets, "<UNK>": 100 * p.unk_share, "mean": p.mean}
        scores |= {"forward": p.forward, "backward": p.backward, "mean without <UNK>": p.mean_known}
        run = {"model": args.weights.stem, "source": source, "scores": scores}
        print(json.dumps(run | {"command": "scripts/perplexity_by_domain.py"}))


if __name__ == "__main__":
    main()
