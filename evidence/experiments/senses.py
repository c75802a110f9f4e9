"""Probe the layers for word senses with `spacy elmo probe word-sense`, and optionally with WordNet's first senses.

If the labelled text is missing, the program prints a message and removes OUT.json.

python -m experiments.senses report/full/word-sense.json "" en_base_v2 "DATA/wsd/semcor*.jsonl" DATA/wsd/senseval2.jsonl
"""

import argparse
import glob
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Parse the arguments and call the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT.json")
    parser.add_argument(
        "first_senses", metavar="INDEX_SENSE", help="WordNet's index.sense; empty: do not use it"
    )
    parser.add_argument("weights", metavar="WEIGHTS")
    parser.add_argument("train", metavar="TRAIN", help="a file or a glob pattern")
    parser.add_argument("tests", nargs="+", metavar="TEST")
    args = parser.parse_args()
    missing = [text for text in (args.train, *args.tests) if not glob.glob(text)]
    if missing:
        print(f"Word senses are skipped: there is no {', '.join(missing)}")
        # Otherwise the report would use the file of an earlier call.
        args.out.unlink(missing_ok=True)
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "spacy", "elmo", "probe", "word-sense", args.weights]
    command += [args.train, *args.tests, "--out", str(args.out)]
    if args.first_senses:
        command += ["--first-senses", args.first_senses]
    raise SystemExit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
