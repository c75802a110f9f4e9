"""The uses of a word, by `spacy elmo neighbors`: a map, coloured by sense if labelled, and the nearest uses.

python -m experiments.uses report/full en_base_v1 bank LABELLED.jsonl TEXT "They sat on the bank of the river."
"""

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Parse the arguments and call the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="OUT_DIR")
    parser.add_argument("weights", metavar="WEIGHTS")
    parser.add_argument("word", metavar="WORD")
    parser.add_argument("labelled", metavar="LABELLED", help="of the map")
    parser.add_argument("quoted", metavar="TEXT", help="whose nearest uses are quoted")
    parser.add_argument("queries", nargs="+", metavar="SENTENCE")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    queries = [argument for query in args.queries for argument in ("--query", query)]
    mapped = args.labelled if Path(args.labelled).is_file() else args.quoted
    for text, name in ((mapped, "neighbors.png"), (args.quoted, "neighbors.json")):
        command = [
            sys.executable,
            "-m",
            "spacy",
            "elmo",
            "neighbors",
            args.weights,
            text,
            args.word,
        ]
        done = subprocess.run([*command, *queries, "--out", str(args.folder / name)])
        if done.returncode != 0:
            raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
