"""How fast a biLM serves, and in how much memory: words per second of the bare network and of `nlp.pipe`, beside those
of AllenNLP's ELMo, of transformers in spaCy, and of the network's matrix products alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from contest import Result, compare, contenders
from sentences import SAMPLE
from sizes import SIZES
from speed_figure import draw
from targets import TARGETS

PRECISIONS = ("float32", "bfloat16", "int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 256], help="sentences")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--allennlp", type=Path, help="folder into which pip has put allennlp")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--figure", type=Path, help="PNG file to write")
    args = parser.parse_args()
    results: list[Result] = []
    milliseconds: dict[str, dict[str, Any]] = {"import": run("import_time.py")}
    for threads in args.threads:
        options = ["--threads", str(threads), "--text", str(args.text)]
        milliseconds[f"one sentence, threads {threads}"] = run("latency.py", *options)
        for size in args.sizes:
            found = compare(
                size,
                list(contenders(size, args.precisions, allennlp=args.allennlp is not None)),
                batches=args.batches,
                rounds=args.rounds,
                threads=threads,
                text=args.text,
                allennlp=args.allennlp,
            )
            print("\n".join(table(found)), end="\n\n", flush=True)
            results += found
    print("\n".join(targets(results)))
    print("\n".join(limits(milliseconds)))
    if args.out:
        report = {
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
            "results": [asdict(result) for result in results],
            "milliseconds": milliseconds,
        }
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")
    if args.figure:
        draw(results, args.figure)


def run(script: str, *options: str) -> dict[str, Any]:
    """What another benchmark writes, in a process of its own."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, str(Path(__file__).with_name(script)), *options]
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text("utf8"))


def table(results: list[Result]) -> Iterator[str]:
    """Lines with words per second and megabytes of the contenders of a size."""
    batches = list(dict.fromkeys(result.batch for result in results))
    cells = {(result.side, result.batch): result for result in results}
    first = results[0]
    title = f"{first.size}, threads: {first.threads}"
    yield f"{title:28}" + "".join(f"{f'batches of {batch}':>24}" for batch in batches)
    for side in dict.fromkeys(result.side for result in results):
        row = [cells.get((side, batch)) for batch in batches]
        figures = (f"{r.speed:10,.0f} w/s{r.peak:7,.0f} MB" if r else f"{'-':>24}" for r in row)
        yield f"{f'{side.kind}, {side.precision}':28}" + "".join(figures)


def targets(results: list[Result]) -> Iterator[str]:
    """Lines with how many times as fast one is as another, asked and found, for those who took part."""
    batches = list(dict.fromkeys(result.batch for result in results))
    cells = {(r.threads, r.size, r.side, r.batch): r for r in results}
    heads = "".join(f"{f'by {batch}':>9}" for batch in batches)
    yield f"{'times as fast, in batches':40}{'threads':>9}{'asked':>9}{heads}"
    for target in TARGETS:
        for threads in dict.fromkeys(result.threads for result in results):
            places = [(threads, target.size, target.fast, batch) for batch in batches]
            rivals = [(threads, target.size, target.slow, batch) for batch in batches]
            quotients = [
                cells[own].times(cells[other]) if own in cells and other in cells else None
                for own, other in zip(places, rivals, strict=True)
            ]
            if any(quotients):
                found = "".join(f"{q:9.2f}" if q else f"{'-':>9}" for q in quotients)
                yield f"{target.what:40}{threads:9}{target.least:9.2f}{found}"


def limits(milliseconds: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Lines with what takes milliseconds, asked and found."""
    for name, found in milliseconds.items():
        if name == "import":
            yield f"{'importing the factory and the commands':49}{'< 50 ms':>9}{found['added']:6.1f} ms"
        else:
            middle = found["float32"]["median"]
            yield f"{f'{name}: median':49}{'< 5 ms':>9}{middle:6.2f} ms"


if __name__ == "__main__":
    main()
