"""Speed and memory of inference with a biLM, in words per second, for the network itself and for `nlp.pipe`. They are
compared with AllenNLP's ELMo, transformers in spaCy, and the network's matrix products.
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
from contest.figure import draw
from contest.rounds import Result, compare, contenders
from contest.targets import TARGETS
from measuring import precisions
from measuring.sentences import SAMPLE
from measuring.sizes import SIZES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument(
        "--batches",
        nargs="+",
        type=int,
        default=[1, 32, 256],
        help="numbers of sentences in a batch",
    )
    parser.add_argument("--precisions", nargs="+", choices=precisions.ALL, default=precisions.FAST)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument(
        "--allennlp", type=Path, help="folder into which pip has installed allennlp"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--figure", type=Path, help="PNG file to write")
    args = parser.parse_args()
    results: list[Result] = []
    milliseconds: dict[str, dict[str, Any]] = {"import": run("import_time.py")}
    for threads in args.threads:
        options = ["--threads", str(threads), "--text", str(args.text)]
        milliseconds[f"one sentence, threads {threads}"] = run("latency.py", *options)
        for size in args.sizes:
            size_results = compare(
                size,
                list(contenders(size, args.precisions, allennlp=args.allennlp is not None)),
                batches=args.batches,
                rounds=args.rounds,
                threads=threads,
                text=args.text,
                allennlp=args.allennlp,
            )
            print("\n".join(table(size_results)), end="\n\n", flush=True)
            results += size_results
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
    """Run another benchmark in its own process, and return its JSON output."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, str(Path(__file__).with_name(script)), *options]
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text("utf8"))


def table(results: list[Result]) -> Iterator[str]:
    """Yield the lines of a table with the words per second and megabytes of the contenders of a size."""
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
    """Yield the lines of a table with the target ratios of speeds and the measured ones. A ratio without results of
    both contenders is left out."""
    batches = list(dict.fromkeys(result.batch for result in results))
    cells = {(r.threads, r.size, r.side, r.batch): r for r in results}
    heads = "".join(f"{f'by {batch}':>9}" for batch in batches)
    yield f"{'times as fast, in batches':40}{'threads':>9}{'target':>9}{heads}"
    for target in TARGETS:
        for threads in dict.fromkeys(result.threads for result in results):
            fast, slow = (
                [cells.get((threads, target.size, side, batch)) for batch in batches]
                for side in (target.fast, target.slow)
            )
            ratios = [f.times(s) if f and s else None for f, s in zip(fast, slow, strict=True)]
            if any(ratios):
                measured = "".join(f"{r:9.2f}" if r else f"{'-':>9}" for r in ratios)
                yield f"{target.name:40}{threads:9}{target.least:9.2f}{measured}"


def limits(milliseconds: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table with the milliseconds of imports and short sentences, and their targets."""
    for name, times in milliseconds.items():
        if name == "import":
            yield f"{'importing the factory and the commands':49}{'< 50 ms':>9}{times['added']:6.1f} ms"
        else:
            median = times["float32"]["median"]
            yield f"{f'{name}: median':49}{'< 5 ms':>9}{median:6.2f} ms"


if __name__ == "__main__":
    main()
