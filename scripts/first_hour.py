"""The first hour of a user: install the wheel, train and package a pipeline, install it elsewhere. Times are printed.

    python scripts/first_hour.py dist/spacy_elmo-*.whl
    python scripts/first_hour.py dist/spacy_elmo-*.whl --python python3.13 --requirement torch==2.13.0 --expect none

All steps run in a temporary folder with two environments. One trains the pipeline, the other has only the finished
package. Packages on PYTHONPATH count as installed in both.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).parent.parent / "corpus" / "sample" / "ner"
STEPS = 200
TEXT = "The judge asked Anna Ashdown to stand up."
PREDICT = f"""
import spacy
nlp = spacy.load("en_first_hour")
doc = nlp({TEXT!r})
print([(ent.text, ent.label_) for ent in doc.ents], doc._.elmo.shape)
print(nlp.meta["license"], "|", ", ".join(source["name"] for source in nlp.meta["sources"]))
"""
COMPILED = """
from spacy_elmo.bilm.kernels.native import library
print("compiled" if library() else "none")
"""


class Transcript:
    """The steps of a user in a folder. Commands and their output are printed, and times are stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.times: list[tuple[str, float]] = []

    def step(self, name: str, python: Path | str, *arguments: str, show: int = 0) -> str:
        """Run Python with arguments, print the command and the last lines of its output, and return the output.

        Raises:
            SystemExit: the command has failed.
        """
        print(f"\n$ {shlex.join(['python', *arguments])}", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            [str(python), *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.times.append((name, time.monotonic() - start))
        lines = done.stdout.rstrip().splitlines()
        print("\n".join(lines[-show:] if show and not done.returncode else lines), flush=True)
        if done.returncode:
            raise SystemExit(f"The step {name!r} failed with exit code {done.returncode}")
        return done.stdout

    def environment(self, name: str, python: str) -> Path:
        """Create a virtual environment, and return the path of its Python."""
        self.step(f"environment {name}", python, "-m", "venv", name)
        folder = self.folder / name
        return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def first_hour(
    folder: Path, wheel: Path, python: str, requirements: list[str], expected: str | None
) -> list[tuple[str, float]]:
    """Run all steps from the wheel to a prediction of an installed package. Return their times in seconds.

    Raises:
        SystemExit: a step has failed, or the compiled part is not the expected one.
    """
    run = Transcript(folder)
    here = run.environment("here", python)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run.step("pip install of the wheel", here, *pip, *requirements, str(wheel), "build", show=3)
    found = run.step("compiled part", here, "-c", COMPILED).strip()
    if expected not in (None, found):
        raise SystemExit(f"The compiled part is {found!r}, but --expect is {expected!r}")

    elmo = ("-m", "spacy", "elmo")
    run.step("init-config", here, *elmo, "init-config", "ner.cfg", "--lang", "en", "-p", "ner")
    for part in ("train", "dev"):
        source = SAMPLE / f"sample-{part}.tsv"
        convert = ("-m", "spacy", "convert", str(source), ".", "--converter", "ner")
        run.step(f"convert {part}", here, *convert, show=1)
    data = ("--paths.train", "sample-train.spacy", "--paths.dev", "sample-dev.spacy")
    limits = ("--training.max_steps", str(STEPS), "--training.eval_frequency", "50")
    train = ("-m", "spacy", "train", "ner.cfg", *data, *limits, "--output", "training")
    run.step("train", here, *train, show=12)
    (folder / "packages").mkdir()
    name = ("--name", "first_hour", "--build", "wheel")
    package = ("-m", "spacy", "package", "training/model-best", "packages", *name)
    run.step("package", here, *package, show=4)

    elsewhere = run.environment("elsewhere", python)
    (packaged,) = (folder / "packages").rglob("*.whl")
    finished = folder / packaged.name
    packaged.replace(finished)
    # The wheel of spacy-elmo is installed from its file, because no index has it before it is published.
    both = (str(wheel), str(finished))
    run.step("pip install of the package", elsewhere, *pip, *requirements, *both, show=3)
    run.step("predict", elsewhere, "-c", PREDICT)
    return run.times


def main() -> None:
    """Run all steps and print their times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="wheel of spacy-elmo")
    parser.add_argument(
        "--python", default=sys.executable, help="Python with which the environments are created"
    )
    parser.add_argument(
        "--requirement",
        action="append",
        default=[],
        help="another requirement to install; repeatable",
    )
    parser.add_argument(
        "--expect",
        choices=("compiled", "none"),
        help="fail if the wheel's compiled part on this machine is not this",
    )
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        times = first_hour(
            Path(folder), args.wheel.resolve(), args.python, args.requirement, args.expect
        )
    print("\nSeconds")
    for name, seconds in [*times, ("all", sum(seconds for _, seconds in times))]:
        print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    main()
