"""`make bench`: the speeds of this machine in one file and one picture, in about ten minutes.

It measures inference in all sizes (`speed.py`), training compared with the rivals (`rivals.py`) and by kind of
operation (`training_profile.py`), the gates (`gates.py`), matrix products (`products.py`), a short sentence
(`latency.py`) and spaCy's start (`import_time.py`). It uses one thread; inference of the small size is also measured
with two threads.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from datetime import date
from pathlib import Path

import torch
from contest.figure import draw
from contest.rounds import Result, compare, contenders
from contest.targets import Side
from measuring import precisions
from measuring.processor import file_name, processor
from measuring.sentences import SAMPLE
from speed import limits, run, table, targets

from spacy_elmo.bilm.kernels.native import active_kernels
from spacy_elmo.bilm.kernels.native import processor as kernels

RESULTS = Path(__file__).parent / "results"
BATCHES = {"mini": [1, 32, 256], "small": [1, 32, 256], "original": [32]}
"""Numbers of sentences in a batch for each size. The original size has only one, because it is slow."""
ON_TWO_THREADS = [
    Side(kind, precision) for precision in precisions.TRAINED for kind in ("network", "products")
]


def main() -> None:
    """Run all measurements, print tables, and write PROCESSOR-KERNELS.json and a picture with the same name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument(
        "--allennlp", type=Path, help="folder into which pip has installed allennlp"
    )
    parser.add_argument("--sizes", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds of inference")
    parser.add_argument("--words", type=int, default=2000, help="number of words for training")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=RESULTS)
    args = parser.parse_args()
    allennlp = args.allennlp if args.allennlp and args.allennlp.is_dir() else None
    results: list[Result] = []
    parts = [
        (size, _contenders(size, allennlp is not None), BATCHES[size], args.threads)
        for size in args.sizes
    ]
    if "small" in args.sizes and args.threads == 1 and (os.cpu_count() or 1) > 1:
        parts.append(("small", ON_TWO_THREADS, [32], 2))
    for size, sides, batches, threads in parts:
        part = compare(
            size,
            sides,
            batches=batches,
            rounds=args.rounds,
            threads=threads,
            text=args.text,
            allennlp=allennlp,
        )
        print("\n".join(table(part)), end="\n\n", flush=True)
        results += part
    print("\n".join(targets(results)), end="\n\n", flush=True)
    common = ["--threads", str(args.threads), "--text", str(args.text)]
    trained = ["--sizes", *(size for size in args.sizes if size != "original")]
    trained += ["--words", str(args.words)]
    rivals = ["--repeats", "2", *(["--allennlp", str(allennlp)] if allennlp else [])]
    milliseconds = {
        "one sentence": run("latency.py", *common),
        "import": run("import_time.py"),
    }
    print("\n".join(limits(milliseconds)), end="\n\n", flush=True)
    report = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "threads": args.threads,
        "date": date.today().isoformat(),
        "kernels": active_kernels(),
        "text": args.text.name,
        "inference": [{**asdict(result), "words per second": result.speed} for result in results],
        "training": run("rivals.py", *common, *trained, *rivals),
        "training by kind of operation": run("training_profile.py", *common, *trained),
        "nanoseconds a cell of the gates": run("gates.py"),
        "products": run("products.py"),
        "milliseconds": milliseconds,
    }
    for name in (
        "training",
        "training by kind of operation",
        "nanoseconds a cell of the gates",
        "products",
    ):
        print(json.dumps(report[name], indent=2), flush=True)
    args.folder.mkdir(parents=True, exist_ok=True)
    path = args.folder / f"{file_name(processor())}-{kernels() or 'torch'}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", "utf8")
    draw(results, path.with_suffix(".png"))
    print(f"{path}\n{path.with_suffix('.png')}")


def _contenders(size: str, allennlp: bool) -> list[Side]:
    """Return the contenders of a size. `original` has no nlp.pipe, which is hardly slower there, and takes a minute."""
    sides = contenders(size, precisions.FAST, allennlp=allennlp)
    return [side for side in sides if size != "original" or side.kind != "nlp.pipe"]


if __name__ == "__main__":
    main()
