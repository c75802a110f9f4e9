"""Growth of the cost of a biLM: seconds by length of sentences, and seconds and memory by size of a corpus.

With two logarithmic axes neither line may be steeper than 1: twice as much text takes at most twice the time.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from contest.contenders import Network
from measuring.process_memory import peak, reset_peak, resident
from measuring.sentences import SAMPLE, read_sentences
from measuring.sizes import SIZES
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.analysis.figures import save_figure
from spacy_elmo.bilm.model import BiLM

LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)
SENTENCES_AT_ONCE = 32
CORPORA = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
TITLE = "Cost of a biLM"


def over_length(size: str, words: list[str], repeats: int) -> Iterator[dict[str, float]]:
    """Time the bare network on 32 sentences of each length, and yield the fastest of `repeats` runs.

    All words are in its cache from the start, because otherwise later lengths would contain fewer new ones.
    """
    torch.manual_seed(0)
    network = Network(BiLM(SIZES[size]), "float32")
    stream = itertools.cycle(words)
    with torch.no_grad():
        network.bilm.encoder(network.bilm.token_ids(sorted(set(words))))
    for length in LENGTHS:
        seconds = []
        for _ in range(repeats):
            sentences = [list(itertools.islice(stream, length)) for _ in range(SENTENCES_AT_ONCE)]
            prepared = network.prepare(sentences, SENTENCES_AT_ONCE)
            start = time.perf_counter()
            network.run(prepared)
            seconds.append(time.perf_counter() - start)
        yield {"words": length, "seconds": min(seconds)}


def over_corpus(sentences: list[list[str]]) -> Iterator[dict[str, float]]:
    """Time `nlp.pipe` with en_mini_v3 on growing numbers of words, and measure its peak memory in MB.

    All words are in its cache from the start, as in `over_length`.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": "en_mini_v3"})
    collections.deque(nlp.pipe(_docs(nlp, sentences, sum(map(len, sentences)))), maxlen=0)
    for size in CORPORA:
        docs = _docs(nlp, sentences, size)
        reset_peak()
        before = resident()
        start = time.perf_counter()
        collections.deque(nlp.pipe(docs), maxlen=0)
        seconds = time.perf_counter() - start
        yield {"words": size, "seconds": seconds, "peak": peak() - before}


def _docs(nlp: Language, sentences: list[list[str]], size: int) -> Iterator[Doc]:
    """Yield Docs of one sentence each, `size` words in all; the sentences are repeated as often as needed."""
    for words in itertools.cycle(sentences):
        if size <= 0:
            return
        yield Doc(nlp.vocab, words=words[:size])
        size -= len(words)


def slope(rows: list[dict[str, float]]) -> float:
    """Return the exponent of the growth of seconds with the number of words, by least squares."""
    words, seconds = (np.log([row[name] for row in rows]) for name in ("words", "seconds"))
    return float(np.polyfit(words, seconds, 1)[0])


def draw(rows: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Write a figure with a panel for the length of sentences and one for the size of the corpus.

    Args:
        path: a .png or .html file.
    """
    titles = {
        "length": f"words of a sentence, {SENTENCES_AT_ONCE} of them read at once",
        "corpus": "words of a corpus",
    }
    log = {"type": "log", "nice": False, "padding": 8}
    axis = {"format": "~s", "tickCount": 6}
    words = {"field": "words", "type": "quantitative", "scale": log}
    seconds = {"field": "seconds", "type": "quantitative", "scale": log, "axis": {"tickCount": 6}}
    panels = [
        {
            "title": f"grows as words to the power {slope(rows[name]):.2f}",
            "data": {"values": rows[name]},
            "width": 320,
            "height": 260,
            "mark": {"type": "line", "point": True},
            "encoding": {"x": {**words, "axis": {"title": title, **axis}}, "y": seconds},
        }
        for name, title in titles.items()
    ]
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    save_figure({"$schema": schema, "title": TITLE, "hconcat": panels}, path, title=TITLE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="mini", help="size of the bare network")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--figure", type=Path, help=".png or .html file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences = read_sentences(args.text, max(CORPORA))
    words = list(itertools.chain.from_iterable(sentences))
    rows: dict[str, list[dict[str, Any]]] = {
        "length": list(over_length(args.size, words, args.repeats)),
        "corpus": list(over_corpus(sentences)),
    }
    print(f"{SENTENCES_AT_ONCE} sentences, {args.size}; power {slope(rows['length']):.2f}")
    for row in rows["length"]:
        print(f"{row['words']:9,} words each{row['seconds']:10.3f} s")
    print(f"\nnlp.pipe with en_mini_v3; power {slope(rows['corpus']):.2f}")
    for row in rows["corpus"]:
        print(f"{row['words']:9,} words     {row['seconds']:10.3f} s{row['peak']:9.0f} MB")
    if args.out:
        args.out.write_text(json.dumps(rows, indent=2) + "\n", "utf8")
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    main()
