"""Milliseconds of `nlp(text)` for a single short sentence, in each precision."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import spacy
import torch
from measuring.sentences import SAMPLE, read_sentences
from spacy.language import Language

LONGEST = 12
"""The largest number of words of a short sentence."""


def short_texts(path: Path, count: int) -> list[str]:
    """Return the first `count` sentences of a text that have 4 to 12 words."""
    sentences = read_sentences(path, 40 * count)
    return [" ".join(words) for words in sentences if 4 <= len(words) <= LONGEST][:count]


def measure(nlp: Language, texts: list[str]) -> dict[str, float]:
    """Return the median and the 90 % quantile of the times of texts, in milliseconds. The first tenth is warm-up."""
    times = []
    for text in texts:
        start = time.perf_counter()
        nlp(text)
        times.append(1000 * (time.perf_counter() - start))
    median, high = np.quantile(times[len(times) // 10 :], [0.5, 0.9])
    return {"median": float(median), "90 %": float(high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="en_mini_v4", help="a bundled biLM, or a path")
    parser.add_argument(
        "--precisions", nargs="+", default=["float32"], help="float32, bfloat16, int8"
    )
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument("--count", type=int, default=300, help="number of sentences")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = short_texts(args.text, args.count)
    tokenizer = spacy.blank("en")
    rows = {"tokenizer alone": measure(tokenizer, texts)}
    for precision in args.precisions:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": args.weights, "precision": precision})
        rows[precision] = measure(nlp, texts)
    print(f"{len(texts)} sentences of 4 to {LONGEST} words, {args.threads} threads\n")
    print(f"{'':20}{'median':>12}{'90 %':>12}")
    for name, row in rows.items():
        print(f"{name:20}{row['median']:9.2f} ms{row['90 %']:9.2f} ms")
    if args.out:
        args.out.write_text(json.dumps(rows, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
