"""Train the biLM of `training/bilm.cfg`, which `prepare` writes unless another biLM is given.

    python pretrain_bilm.py --gpu-id 0 --training.seed 1

It passes the options to `spacy elmo pretrain`.
"""

import subprocess
import sys
from pathlib import Path

CONFIG = Path("training/bilm.cfg")


def main() -> None:
    """Train, or say why not."""
    if not CONFIG.exists():
        print("The pipeline uses the given biLM: nothing to pretrain")
        return
    command = [
        sys.executable,
        "-m",
        "spacy",
        "elmo",
        "pretrain",
        CONFIG,
        "training/bilm",
        "--force",
        *sys.argv[1:],
    ]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
