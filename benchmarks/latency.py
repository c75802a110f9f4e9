"""How long one short sentence takes, `nlp(text)`, one after the other: milliseconds, by precision."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import spacy
import torch
from sentences import SAMPLE, read_sentences
from spacy.language import Language

LONGEST = 12
"""Words of a short sentence."""


def short_texts(path: Path, count: int) -> list[str]:
    """The first sentences of a text of 4 to 12 words."""
    sentences = read_sentences(path, 40 * count)
    return [" ".join(words) for words in sentences if 4 <= len(words) <= LONGEST][:count]


def measure(nlp: Language, texts: list[str]) -> dict[str, float]:
    """Milliseconds of the text in the middle, and of the one that nine tenths undercut. The first tenth is warm-up."""
    found = []
    for text in texts:
        start = time.perf_counter()
        nlp(text)
        found.append(1000 * (time.perf_counter() - start))
    middle, high = np.quantile(found[len(found) // 10 :], [0.5, 0.9])
    return {"median": float(middle), "90 %": float(high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="en_mini_v3", help="a bundled biLM, or a path")
    parser.add_argument(
        "--precisions", nargs="+", default=["float32"], help="float32, bfloat16, int8"
    )
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--count", type=int, default=300, help="how many sentences")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = short_texts(args.text, args.count)
    tokenizer = spacy.blank("en")
    found = {"tokenizer alone": measure(tokenizer, texts)}
    for precision in args.precisions:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": args.weights, "precision": precision})
        found[precision] = measure(nlp, texts)
    print(f"{len(texts)} sentences of 4 to {LONGEST} words, {args.threads} threads\n")
    print(f"{'':20}{'median':>12}{'90 %':>12}")
    for name, row in found.items():
        print(f"{name:20}{row['median']:9.2f} ms{row['90 %']:9.2f} ms")
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
