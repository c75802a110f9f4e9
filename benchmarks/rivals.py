"""How much faster than its rivals the biLM serves and trains: words per second of all of them, in one run.

The rivals are a textbook implementation and, where pip has fetched it, AllenNLP's. All have the same weights and see
the same batches; before anything is timed, layers, loss and gradients are compared. Batches are of like length, which
is the rivals' best case: their padding costs nothing there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from allennlp_elmo import AllenNLP
from sentences import SAMPLE, read_sentences
from sizes import SIZES
from textbook import Textbook
from torch import nn

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head, Negatives
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretrain import objective
from spacy_elmo.pretrain.training.allocation import keep_freed_memory

START, END, FIRST_WORD = 0, 1, 3


class TrainBatch:
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
        self.goals = np.array([*goals, START, END])
        bodies = [[classes[word] for word in sentence] for sentence in sentences]
        self.forward = torch.tensor([goal for body in bodies for goal in [*body, END]])
        self.backward = torch.tensor([goal for body in bodies for goal in [START, *body]])


class Side(Protocol):
    """Whoever reads sentences and learns from them."""

    def layers(self, batch: TrainBatch) -> list[torch.Tensor]:
        """(L+1, n, 2P) for each sentence."""

    def loss(self, batch: TrainBatch) -> torch.Tensor:
        """Mean sampled softmax loss per target, of both directions; a scalar."""

    def parameters(self) -> list[nn.Parameter]:
        """Those of the biLM."""


class Ours:
    def __init__(self, bilm: BiLM, head: Head, negatives: Negatives, dtype: torch.dtype) -> None:
        self.bilm, self.head, self.negatives = bilm, head, negatives
        self.low = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)

    def layers(self, batch: TrainBatch) -> list[torch.Tensor]:
        with self.low:
            output = self.bilm(self.bilm.token_ids(batch.types), batch.words, batch.lengths)
        return list(output.layers.split(batch.lengths, 1))

    def loss(self, batch: TrainBatch) -> torch.Tensor:
        step = objective.TrainBatch(
            self.bilm.token_ids(batch.types), batch.goals, batch.words, np.array(batch.lengths)
        )
        with self.low:
            total = objective.loss_sum(
                self.bilm, self.head, step, [self.negatives] * 2, dropout=0.0
            )
        return total / (2 * len(batch.forward))

    def parameters(self) -> list[nn.Parameter]:
        return list(self.bilm.parameters())


class Rival:
    """The network is the rival's; the loss is ours, because AllenNLP's would be another one."""

    def __init__(self, net: Textbook | AllenNLP, head: Head, negatives: Negatives) -> None:
        self.net, self.head, self.negatives = net, head, negatives

    def layers(self, batch: TrainBatch) -> list[torch.Tensor]:
        return self.net.layers(batch.sentences)

    def loss(self, batch: TrainBatch) -> torch.Tensor:
        forward, backward = self.net.predictions(batch.sentences)
        losses = [
            self.head.sampled_loss(forward, batch.forward, self.negatives),
            self.head.sampled_loss(backward, batch.backward, self.negatives),
        ]
        return torch.stack(losses).sum() / (2 * len(batch.forward))

    def parameters(self) -> list[nn.Parameter]:
        return self.net.parameters()


def serve(side: Side, batch: TrainBatch) -> list[torch.Tensor]:
    with torch.no_grad():
        return side.layers(batch)


def train(side: Side, batch: TrainBatch, head: Head) -> torch.Tensor:
    for parameter in [*side.parameters(), *head.parameters()]:
        parameter.grad = None
    loss = side.loss(batch)
    loss.backward()
    return loss.detach()


def check(expected: Side, found: Side, batch: TrainBatch, head: Head) -> dict[str, float]:
    """Largest differences between two sides, relative to the largest magnitude (at least 1 for layers).

    Raises:
        ValueError: they do not compute the same.
    """
    pairs = zip(serve(expected, batch), serve(found, batch), strict=True)
    differences = {"layers": max(_difference(*pair, least=1.0) for pair in pairs)}
    losses, norms = [], []
    for side in (expected, found):
        losses.append(train(side, batch, head))
        parameters = [*side.parameters(), *head.parameters()]
        # Of all together, because each names and lays out its parameters in its own way.
        norms.append(torch.stack([p.grad.to_dense().norm() for p in parameters]).norm())
    differences["loss"] = _difference(*losses)
    differences["norm of the gradient"] = _difference(*norms)
    limits = {"layers": 1e-5, "loss": 1e-5, "norm of the gradient": 1e-4}
    if any(differences[name] > limit for name, limit in limits.items()):
        raise ValueError(f"The two do not compute the same: {differences}, limits {limits}")
    return differences


def _difference(one: torch.Tensor, other: torch.Tensor, least: float = 0.0) -> float:
    return float((one - other).abs().max()) / max(float(one.abs().max()), least)


def measure(
    batches: list[TrainBatch], repeats: int, **sides: Callable[[TrainBatch], object]
) -> dict[str, float]:
    """Words per second of each side: its best pass over the text, the sides taking turns pass by pass."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        for name, run in sides.items():
            run(batches[0])  # whatever the side before has driven out of the caches
            start = time.perf_counter()
            for batch in batches:
                run(batch)
            best[name] = min(best[name], time.perf_counter() - start)
    n_words = sum(batch.n_words for batch in batches)
    return {name: n_words / second for name, second in best.items()}


def make_batches(bilm: BiLM, sentences: list[list[str]], batch_words: int) -> list[TrainBatch]:
    words = sorted({word for sentence in sentences for word in sentence})
    classes = {word: row for row, word in enumerate(words, FIRST_WORD)}
    sentences = sorted(sentences, key=len)
    number = np.cumsum([len(sentence) for sentence in sentences]) // batch_words
    borders = np.flatnonzero(np.diff(number)) + 1
    parts = np.split(np.arange(len(sentences)), borders)
    return [TrainBatch(bilm, [sentences[b] for b in part], classes) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["mini", "small"])
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--allennlp", type=Path, help="folder into which pip has put allennlp")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--words", type=int, default=8000, help="words of the text to run over")
    parser.add_argument("--batch-words", type=int, default=2000)
    parser.add_argument("--negatives", type=int, default=2048)
    parser.add_argument("--vocab-size", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    report: dict[str, Any] = {
        **{name: value for name, value in vars(args).items() if name not in ("text", "out", "allennlp")},
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
    }  # fmt: skip
    print(f"{args.words:,} words, {args.threads} threads, torch {torch.__version__}\n")
    header = ("words/s", "textbook", "AllenNLP", "float32", "bfloat16", "float32 is", "bfloat16 is")
    print("{:16}{:>10}{:>10}{:>10}{:>10}   {:20}{}".format(*header))
    for size in args.sizes:
        report[size] = compare(SIZES[size], args)
        for task in ("serving", "training"):
            print(_row(f"{size} {task}", report[size][task]))
    for size in args.sizes:
        for rival, differences in report[size]["largest_differences"].items():
            listed = ", ".join(f"{name} {value:.0e}" for name, value in differences.items())
            print(f"{size}, largest relative differences of float32 from {rival}: {listed}")
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


def compare(config: BiLMConfig, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Words per second of every side, by task, and by how much they differ."""
    torch.manual_seed(0)
    bilm, head = BiLM(config), Head(args.vocab_size, config.projection)
    negatives = Negatives(args.vocab_size, args.negatives, np.random.default_rng(0))
    batches = make_batches(bilm, read_sentences(args.text, args.words), args.batch_words)
    ours = Ours(bilm, head, negatives, torch.float32)
    rivals: dict[str, Side] = {"textbook": Rival(Textbook(bilm), head, negatives)}
    if args.allennlp:
        net = AllenNLP.of(bilm, args.allennlp, trained=True)
        rivals["AllenNLP"] = Rival(net, head, negatives)
    middle = batches[len(batches) // 2]
    differences = {name: check(rival, ours, middle, head) for name, rival in rivals.items()}
    low = Ours(bilm, head, negatives, torch.bfloat16)
    sides: dict[str, Side] = {**rivals, "float32": ours, "bfloat16": low}
    runs: dict[str, Callable[[Side, TrainBatch], object]] = {
        "serving": serve,
        "training": lambda side, batch: train(side, batch, head),
    }
    speeds = {
        task: measure(batches, args.repeats, **{n: partial(run, side) for n, side in sides.items()})
        for task, run in runs.items()
    }
    return {**speeds, "largest_differences": differences}


def _row(name: str, speed: dict[str, float]) -> str:
    rivals = [rival for rival in ("textbook", "AllenNLP") if rival in speed]
    cells = [f"{name:16}"] + [
        f"{speed[side]:10,.0f}" if side in speed else f"{'-':>10}"
        for side in ("textbook", "AllenNLP", "float32", "bfloat16")
    ]
    ratios = [
        " and ".join(f"{speed[side] / speed[rival]:.1f}" for rival in rivals) + " x"
        for side in ("float32", "bfloat16")
    ]
    return f"{''.join(cells)}   {ratios[0]:20}{ratios[1]}"


if __name__ == "__main__":
    main()
