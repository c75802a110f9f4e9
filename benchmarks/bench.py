"""`make bench`: words per second of this machine, in inference and in training, compared with other programs.

python -m benchmarks.bench --sizes mini base --batches 32
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
import torch

from benchmarks import training
from benchmarks.networks import SIZES, Network, networks
from benchmarks.sentences import SAMPLE, read_sentences
from spacy_elmo.bilm.kernels.matmul import has_bfloat16
from spacy_elmo.bilm.kernels.native import active_kernels

LEAST = {"mini": 512, "base": 512, "small": 128, "original": 64}
"""Least number of sentences of a round for each size. The slowest network needs some seconds for them."""
WARM_UP = {True: 512, False: 8}
"""Sentences before each measurement, for networks with a cache of words and for others: with a cache, the measurement
is that of the middle of a text, where most words are cached."""


def precisions() -> list[str]:
    """Return the precisions that this processor does not emulate. `SPACY_ELMO_KERNELS` may name a slower processor, so
    then only float32 is measured."""
    fast = has_bfloat16(torch.device("cpu"))
    return (
        ["float32", "bfloat16"]
        if fast and not os.environ.get("SPACY_ELMO_KERNELS")
        else ["float32"]
    )


def inference(
    size: str, text: Path, sizes_of_batches: Sequence[int], rounds: int, allennlp: Path | None
) -> dict[str, dict[int, float]]:
    """Return the words per second of each network and size of batch: the median of the rounds.

    In every round, the networks take turns on the same sentences. Batches have sentences of similar length.
    """
    counts = {batch: max(batch, LEAST[size]) for batch in sizes_of_batches}
    total = rounds * sum(counts.values()) + WARM_UP[True]
    distinct = [words for words in read_sentences(text, 40 * total) if words]
    # A short text is repeated.
    sentences = (distinct * -(-total // len(distinct)))[:total]
    words = sorted({word for sentence in sentences for word in sentence})
    speeds: dict[str, dict[int, list[float]]] = {}
    with TemporaryDirectory() as folder:
        compared = networks(size, Path(folder), words, precisions(), allennlp)
        start = 0
        for batch, count in counts.items():
            for _ in range(rounds):
                part = sorted(sentences[start : start + count], key=len)
                start += count
                n_words = sum(map(len, part))
                for name, network in compared.items():
                    seconds = timed(network, part, batch, sentences)
                    speeds.setdefault(name, {}).setdefault(batch, []).append(n_words / seconds)
    return {
        name: {batch: statistics.median(each) for batch, each in by_batch.items()}
        for name, by_batch in speeds.items()
    }


def timed(
    network: Network, part: Sequence[Sequence[str]], batch: int, text: Sequence[Sequence[str]]
) -> float:
    """Return the seconds of a network on sentences. It starts with the words of the last sentences of the text."""
    if network.clear_cache:
        network.clear_cache()
    network.run(network.prepare(text[-WARM_UP[network.clear_cache is not None] :], 32))
    prepared = network.prepare(part, batch)
    start = time.perf_counter()
    network.run(prepared)
    return time.perf_counter() - start


def latency(text: Path, count: int = 300) -> float:
    """Return the median milliseconds of `nlp(text)` with `en_mini_v4`, for sentences of 4 to 12 words."""
    sentences = read_sentences(text, 40 * count)
    short = [" ".join(words) for words in sentences if 4 <= len(words) <= 12][:count]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": "en_mini_v4"})
    times = []
    for sentence in short:
        start = time.perf_counter()
        nlp(sentence)
        times.append(1000 * (time.perf_counter() - start))
    # The first tenth is warm-up.
    return statistics.median(times[len(times) // 10 :])


def table(title: str, rows: Mapping[str, Mapping[Any, float]]) -> str:
    """Return words per second as a table in Markdown, with a column for each name in the rows."""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines: list[list[str]] = [[title, *map(str, columns)], ["---", *["---:"] * len(columns)]]
    for name, row in rows.items():
        lines.append([name, *(f"{row[c]:,.0f}" if c in row else "" for c in columns)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Run all measurements, print tables, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=SAMPLE, help="text with a paragraph per line")
    parser.add_argument("--allennlp", type=Path, help="folder into which pip has installed it")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["mini", "small", "original"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--rounds", type=int, default=1, help="rounds of inference")
    parser.add_argument("--words", type=int, default=2000, help="words of training")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    allennlp = args.allennlp if args.allennlp and args.allennlp.is_dir() else None
    report: dict[str, Any] = {
        "torch": torch.__version__,
        "kernels": active_kernels(),
        "threads": args.threads,
        "cores": os.cpu_count(),
        "date": date.today().isoformat(),
        "text": args.text.name,
        "inference": {},
        "training": {},
    }
    print(f"{report['kernels']}, torch {torch.__version__}, threads: {args.threads}\n", flush=True)
    for size in args.sizes:
        # The original size is so slow that one size of batch must do, and is left out in training.
        batches = [32] if size == "original" else args.batches
        found = inference(size, args.text, batches, args.rounds, allennlp)
        report["inference"][size] = found
        print(table(f"{size}, sentences in a batch", found), end="\n\n", flush=True)
    for size in [size for size in args.sizes if size != "original"]:
        found = training.measure(size, args.text, args.words, precisions(), allennlp)
        report["training"][size] = found
        print(table(f"{size}, 2,000 words a batch", found), end="\n\n", flush=True)
    report["milliseconds of a short sentence"] = latency(args.text)
    print(f"A short sentence: {report['milliseconds of a short sentence']:.1f} ms (en_mini_v4)")
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
