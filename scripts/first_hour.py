"""The first hour of a user: install the wheel, train and package a pipeline, install it elsewhere and predict.

    python scripts/first_hour.py dist/spacy_elmo-*.whl
    python scripts/first_hour.py dist/spacy_elmo-*.whl --requirement torch==2.13.0 --expect none

All steps run in a temporary folder with two environments. One trains the pipeline, the other has only the finished
package.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLE = Path(__file__).parent.parent / "corpus" / "sample" / "ner"
PREDICT = """
import spacy
doc = spacy.load("en_first_hour")("The judge asked Anna Ashdown to stand up.")
print([(ent.text, ent.label_) for ent in doc.ents], doc._.elmo.shape)
"""
COMPILED = """
from spacy_elmo.bilm.kernels.native import library
print("compiled" if library() else "none")
"""


def first_hour(folder: Path, wheel: Path, requirements: list[str], expected: str | None) -> None:
    """Run all steps from the wheel to a prediction of an installed package.

    Raises:
        subprocess.CalledProcessError: a step has failed.
        SystemExit: the compiled part is not the expected one.
    """

    def run(python: Path | str, *arguments: str) -> str:
        print(f"\n$ {shlex.join(['python', *arguments])}", flush=True)
        done = subprocess.run(
            [str(python), *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
        )
        print(done.stdout, flush=True)
        return done.stdout

    def environment(name: str, *packages: str) -> Path:
        """Return the Python of a new environment with packages."""
        run(sys.executable, "-m", "venv", name)
        python = folder / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        run(python, "-m", "pip", "install", "--quiet", *requirements, *packages)
        return python

    here = environment("here", str(wheel), "build")
    found = run(here, "-c", COMPILED).strip()
    if expected not in (None, found):
        raise SystemExit(f"The compiled part is {found!r}, but --expect is {expected!r}")
    run(here, "-m", "spacy", "elmo", "init-config", "ner.cfg", "--lang", "en", "-p", "ner")
    for part in ("train", "dev"):
        source = SAMPLE / f"sample-{part}.tsv"
        run(here, "-m", "spacy", "convert", str(source), ".", "--converter", "ner")
    data = ("--paths.train", "sample-train.spacy", "--paths.dev", "sample-dev.spacy")
    limits = ("--training.max_steps", "200", "--training.eval_frequency", "50")
    run(here, "-m", "spacy", "train", "ner.cfg", *data, *limits, "--output", "training")
    (folder / "packages").mkdir()
    name = ("--name", "first_hour", "--build", "wheel")
    run(here, "-m", "spacy", "package", "training/model-best", "packages", *name)
    (packaged,) = (folder / "packages").rglob("*.whl")
    # The wheel of spacy-elmo is installed from its file, because no index has it before it is published.
    run(environment("elsewhere", str(wheel), str(packaged)), "-c", PREDICT)


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="wheel of spacy-elmo")
    parser.add_argument(
        "--requirement",
        action="append",
        default=[],
        help="another requirement to install; repeatable",
    )
    parser.add_argument(
        "--expect", choices=("compiled", "none"), help="what the wheel must have on this machine"
    )
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        first_hour(Path(folder), args.wheel.resolve(), args.requirement, args.expect)


if __name__ == "__main__":
    main()
