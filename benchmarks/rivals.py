"""How much faster than a textbook the biLM serves and trains: words per second of both, in one run.

Both have the same weights and see the same batches; before anything is timed, layers, loss and gradients are
compared. Batches are of like length, which is the textbook's best case: its padding costs nothing there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from textbook import Textbook

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head, Negatives
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentences import sentence_starts

# AllenNLP's small model, elmo_2x1024_128_2048cnn_1xhighway.
SMALL = BiLMConfig(dim=1024, projection=128, highways=1)
SAMPLE = Path(__file__).parents[1] / "corpus" / "sample" / "pretrain-en" / "train-00.txt"
START, END, FIRST_WORD = 0, 1, 3


class Batch:
    """Sentences, and what the biLM and the loss want of them."""

    def __init__(self, bilm: BiLM, sentences: list[list[str]], classes: dict[str, int]) -> None:
        self.sentences = sentences
        self.lengths = [len(sentence) for sentence in sentences]
        self.n_words = sum(self.lengths)
        types, words = np.unique(
            [word for sentence in sentences for word in sentence], return_inverse=True
        )
        self.types, self.words = types.tolist(), words
        goals = [classes[word] for word in self.types]
        # By row of a reading's tokens: the distinct words, then the boundaries.
        self.goals = np.array([*goals, START, END])
        bodies = [[classes[word] for word in sentence] for sentence in sentences]
        self.forward = torch.tensor([goal for body in bodies for goal in [*body, END]])
        self.backward = torch.tensor([goal for body in bodies for goal in [START, *body]])


def serve_ours(bilm: BiLM, batch: Batch) -> list[torch.Tensor]:
    with torch.no_grad():
        output = bilm(bilm.token_ids(batch.types), batch.words, batch.lengths)
    return list(output.layers.split(batch.lengths, 1))


def serve_textbook(bilm: BiLM, batch: Batch) -> list[torch.Tensor]:
    with torch.no_grad():
        return Textbook(bilm).layers(batch.sentences)


def train_ours(bilm: BiLM, batch: Batch, head: Head, negatives: Negatives) -> torch.Tensor:
    bilm.zero_grad()
    head.zero_grad()
    reading = bilm.read(bilm.token_ids(batch.types), batch.words, batch.lengths)
    forward, backward = reading.packing.reads
    goals = batch.goals[np.stack([reading.sequence[forward + 1], reading.sequence[backward - 1]])]
    pairs = zip(reading.outputs[-1], torch.from_numpy(goals), strict=True)
    return _step(sum(head.sampled_loss(hidden, goal, negatives) for hidden, goal in pairs), batch)


def train_textbook(bilm: BiLM, batch: Batch, head: Head, negatives: Negatives) -> torch.Tensor:
    bilm.zero_grad()
    head.zero_grad()
    forward, backward = Textbook(bilm).predictions(batch.sentences)
    loss = head.sampled_loss(forward, batch.forward, negatives)
    return _step(loss + head.sampled_loss(backward, batch.backward, negatives), batch)


def _step(loss: Any, batch: Batch) -> torch.Tensor:
    loss = loss / (2 * len(batch.forward))
    loss.backward()
    return loss.detach()


def check(bilm: BiLM, batch: Batch, head: Head, negatives: Negatives) -> dict[str, float]:
    """Largest differences between the two, relative to the largest magnitude (at least 1 for layers).

    Raises:
        ValueError: they do not compute the same.
    """
    pairs = zip(serve_textbook(bilm, batch), serve_ours(bilm, batch), strict=True)
    differences = {"layers": max(_difference(*pair, least=1.0) for pair in pairs)}
    losses, gradients = [], []
    for train in (train_textbook, train_ours):
        losses.append(train(bilm, batch, head, negatives))
        parameters = [*bilm.parameters(), *head.parameters()]
        gradients.append([p.grad.to_dense().clone() for p in parameters])
    differences["loss"] = _difference(*losses)
    differences["gradients"] = max(map(_difference, *gradients))
    limits = {"layers": 1e-5, "loss": 1e-5, "gradients": 1e-3}
    if any(differences[name] > limit for name, limit in limits.items()):
        raise ValueError(f"The two do not compute the same: {differences}, limits {limits}")
    return differences


def _difference(one: torch.Tensor, other: torch.Tensor, least: float = 0.0) -> float:
    return float((one - other).abs().max()) / max(float(one.abs().max()), least)


def measure(
    batches: list[Batch], repeats: int, **sides: Callable[[Batch], object]
) -> dict[str, float]:
    """Words per second of each side: its best round, the sides taking turns batch by batch."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        seconds = dict.fromkeys(sides, 0.0)
        for batch in batches:
            for name, run in sides.items():
                start = time.perf_counter()
                run(batch)
                seconds[name] += time.perf_counter() - start
        best = {name: min(best[name], seconds[name]) for name in sides}
    n_words = sum(batch.n_words for batch in batches)
    return {name: n_words / second for name, second in best.items()}


def read_sentences(path: Path, n_words: int) -> list[list[str]]:
    """The first sentences of a text, about `n_words` words together."""
    tokenizer = spacy.blank("en").tokenizer
    sentences: list[list[str]] = []
    total = 0
    with path.open(encoding="utf8") as file:
        for line in file:
            words = [token.text for token in tokenizer(line.strip()) if not token.is_space]
            borders = [*np.flatnonzero(sentence_starts(words)).tolist(), len(words)]
            sentences += [words[a:b] for a, b in pairwise(borders)]
            total += len(words)
            if total >= n_words:
                break
    return sentences


def make_batches(bilm: BiLM, sentences: list[list[str]], batch_words: int) -> list[Batch]:
    words = sorted({word for sentence in sentences for word in sentence})
    classes = {word: row for row, word in enumerate(words, FIRST_WORD)}
    sentences = sorted(sentences, key=len)
    number = np.cumsum([len(sentence) for sentence in sentences]) // batch_words
    borders = np.flatnonzero(np.diff(number)) + 1
    parts = np.split(np.arange(len(sentences)), borders)
    return [Batch(bilm, [sentences[b] for b in part], classes) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--words", type=int, default=8000, help="words of the text to run over")
    parser.add_argument("--batch-words", type=int, default=1000)
    parser.add_argument("--negatives", type=int, default=2048)
    parser.add_argument("--vocab-size", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    bilm, head = BiLM(SMALL), Head(args.vocab_size, SMALL.projection)
    negatives = Negatives(args.vocab_size, args.negatives, np.random.default_rng(0))
    sentences = read_sentences(args.text, args.words)
    batches = make_batches(bilm, sentences, args.batch_words)
    differences = check(bilm, batches[len(batches) // 2], head, negatives)
    results = {
        "serving": measure(
            batches, args.repeats,
            textbook=lambda batch: serve_textbook(bilm, batch),
            ours=lambda batch: serve_ours(bilm, batch),
        ),
        "training": measure(
            batches, args.repeats,
            textbook=lambda batch: train_textbook(bilm, batch, head, negatives),
            ours=lambda batch: train_ours(bilm, batch, head, negatives),
        ),
    }  # fmt: skip
    n_words = sum(batch.n_words for batch in batches)
    print(
        f"{n_words} words in {len(batches)} batches, {args.threads} threads, torch {torch.__version__}"
    )
    print("largest differences: " + ", ".join(f"{k} {v:.1e}" for k, v in differences.items()))
    print(f"\n{'words/s':10}{'textbook':>12}{'spacy-elmo':>12}{'ratio':>8}")
    for name, speed in results.items():
        ratio = speed["ours"] / speed["textbook"]
        print(f"{name:10}{speed['textbook']:12,.0f}{speed['ours']:12,.0f}{ratio:8.1f}")
    if args.out:
        report = {
            "config": SMALL.to_dict(),
            "words": n_words,
            "batches": len(batches),
            "threads": args.threads,
            "negatives": args.negatives,
            "vocab_size": args.vocab_size,
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
            "words_per_second": results,
            "ratio": {name: speed["ours"] / speed["textbook"] for name, speed in results.items()},
            "largest_differences": differences,
        }
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
