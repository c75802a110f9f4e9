"""Draw the learned layer weights of the first pipeline of every task with `spacy elmo layers`.

python -m experiments.layers plan.yml full
"""

import argparse
import subprocess
import sys
from pathlib import Path

from .plan import Plan


def pipelines(plan: Plan, size: str) -> list[Path]:
    """Return the trained pipelines that the runs have kept.

    Raises:
        ValueError: the plan has no such size.
        FileNotFoundError: there are no trained pipelines.
    """
    kept = (run.folder / "model-best" for run in plan.runs(size) if run.pipeline_kept)
    found = sorted(path for path in kept if path.is_dir())
    if not found:
        raise FileNotFoundError(
            f"training/{size} has no trained pipeline; `spacy project run runs` trains them"
        )
    return found


def main() -> None:
    """Parse the arguments and call the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("size", metavar="SIZE")
    args = parser.parse_args()
    try:
        found = pipelines(Plan.read(args.plan), args.size)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    folder = Path("report", args.size)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "spacy", "elmo", "layers", *map(str, found)]
    out = ["--out", str(folder / "layers.png"), "--code", "register.py"]
    raise SystemExit(subprocess.run([*command, *out]).returncode)


if __name__ == "__main__":
    main()
