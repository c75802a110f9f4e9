"""Static vectors from tokenized text: floret, and the vectors table that spaCy makes of it.

    python floret_vectors.py TEXT.txt OUT --lang en

The settings are those that spaCy's documentation trains floret vectors with: CBOW, 300 dimensions, two hashes per word
piece of 4 to 5 characters into 50,000 rows. floret runs OMP_NUM_THREADS threads.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path


def train(text: Path, out: Path, *, lang: str = "en", threads: int = 1) -> None:
    """Train the vectors and write the folder, which appears when it is complete.

    Args:
        text: file of tokens separated by spaces.
        out: the folder that `--paths.vectors` names.

    Raises:
        ImportError: floret is not installed.
        OSError: there is no such text.
        subprocess.CalledProcessError: spaCy could not read the vectors.
    """
    try:
        import floret
    except ImportError as error:
        raise ImportError("no floret: python -m pip install floret") from error
    if not text.is_file():
        raise FileNotFoundError(f"{text}: no such file of tokenized text")
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
    """Parse the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, metavar="TEXT.txt")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--lang", default="en", help="language of the vectors")
    args = parser.parse_args()
    try:
        threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        train(args.text, args.out, lang=args.lang, threads=threads)
    except (ImportError, OSError, ValueError, subprocess.CalledProcessError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
