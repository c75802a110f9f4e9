"""Draw the learned layer weights of every task's first pipeline: `spacy elmo layers` of those that the runs have left.

python -m experiments.layers full
"""

import argparse
import subprocess
import sys
from pathlib import Path


def pipelines(size: str) -> list[Path]:
    """Those with ELMo and all of the training data, of seed 0.

    Raises:
        FileNotFoundError: there are none.
    """
    found = sorted(Path("training", size).glob("*/*_elmo-0/model-best"))
    if not found:
        raise FileNotFoundError(
            f"training/{size}: no trained pipeline; `spacy project run runs` makes them"
        )
    return found


def main() -> None:
    """Parse and call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", metavar="SIZE")
    size = parser.parse_args().size
    try:
        found = pipelines(size)
    except OSError as error:
        raise SystemExit(str(error)) from error
    folder = Path("report", size)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "spacy", "elmo", "layers", *map(str, found)]
    out = ["--out", str(folder / "layers.png"), "--code", "register.py"]
    raise SystemExit(subprocess.run([*command, *out]).returncode)


if __name__ == "__main__":
    main()
