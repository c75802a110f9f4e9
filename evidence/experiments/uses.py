"""The uses of a word, by `spacy elmo neighbors`: a map of uses whose senses are known, and the nearest uses in a text.

python -m experiments.uses report/base en_base_v1 bank ../corpus/sample/senses/bank.jsonl TEXT "They sat on the bank."
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
    parser.add_argument("labelled", metavar="LABELLED", help="annotated with senses, for the map")
    parser.add_argument("quoted", metavar="TEXT", help="whose nearest uses are quoted")
    parser.add_argument("queries", nargs="+", metavar="SENTENCE")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    queries = [argument for query in args.queries for argument in ("--query", query)]
    for text, name in ((args.labelled, "neighbors.png"), (args.quoted, "neighbors.json")):
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
