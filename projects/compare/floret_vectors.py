"""Train static floret vectors on tokenized text, and convert them to a vectors table of spaCy.

    python floret_vectors.py TEXT.txt OUT --lang en

The settings are those of spaCy's documentation: CBOW, 300 dimensions, 50,000 rows, and two hashes for each word piece
of 4 to 5 characters. floret uses OMP_NUM_THREADS threads.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import floret


def train(text: Path, out: Path, *, lang: str = "en", threads: int = 1) -> None:
    """Train the vectors and write their folder. It exists only when it is complete.

    Args:
        text: file of tokens separated by spaces.
        out: folder of the vectors, for `--paths.vectors`.
    """
    model = floret.train_unsupervised(
        str(text), model="cbow", mode="floret", dim=300, minn=4, maxn=5, hashCount=2, bucket=50_000,
        thread=threads, verbose=1,
    )  # fmt: skip
    partial, table = out.with_suffix(".partial"), out.with_suffix(".floret")
    model.save_floret_vectors(str(table))
    command = [sys.executable, "-m", "spacy", "init", "vectors", lang, str(table), str(partial)]
    subprocess.run([*command, "--mode", "floret"], check=True)
    table.unlink()
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)


def main() -> None:
    """Parse the arguments and train the vectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, metavar="TEXT.txt")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--lang", default="en", help="language of the vectors")
    args = parser.parse_args()
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    train(args.text, args.out, lang=args.lang, threads=threads)


if __name__ == "__main__":
    main()
