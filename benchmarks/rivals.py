"""Speed of inference and training of the biLM and two rivals, in words per second, in one run.

The rivals are the reference implementation (`spacy_elmo/bilm/reference.py`) and, if it is installed, AllenNLP. All have
the same weights and the same batches. First, their layers, losses and gradients are compared. The sentences of a batch
have similar lengths, which is the best case of the rivals, because they pad little.
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
from typing import Any

import numpy as np
import torch
from contest.allennlp_elmo import AllenNLP
from contest.training_step import Batch, Learner, Ours, Rival, make_batches, predict, train
from measuring.precisions import TRAINED
from measuring.sentences import SAMPLE, read_sentences
from measuring.sizes import SIZES

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.reference import ReferenceBiLM
from spacy_elmo.pretraining.training.allocation import reuse_memory
from spacy_elmo.pretraining.training.sampled_softmax import Negatives


def check(rival: Learner, ours: Learner, batch: Batch, head: Head) -> dict[str, float]:
    """Return the largest differences between two networks, relative to the largest magnitude (at least 1 for layers).

    Raises:
        ValueError: a difference is too large.
    """
    pairs = zip(predict(rival, batch), predict(ours, batch), strict=True)
    differences = {"layers": max(_difference(*pair, minimum=1.0) for pair in pairs)}
    losses, norms = [], []
    for learner in (rival, ours):
        losses.append(train(learner, batch, head))
        parameters = [*learner.parameters(), *head.parameters()]
        # The norm over all parameters, because the networks name and store their parameters differently.
        norms.append(torch.stack([p.grad.to_dense().norm() for p in parameters]).norm())
    differences["loss"] = _difference(*losses)
    differences["norm of the gradient"] = _difference(*norms)
    limits = {"layers": 1e-5, "loss": 1e-5, "norm of the gradient": 1e-4}
    if any(differences[name] > limit for name, limit in limits.items()):
        raise ValueError(
            f"The results of the networks differ by {differences}, but only {limits} is allowed"
        )
    return differences


def _difference(one: torch.Tensor, other: torch.Tensor, minimum: float = 0.0) -> float:
    return float((one - other).abs().max()) / max(float(one.abs().max()), minimum)


def measure(
    batches: list[Batch], repeats: int, **learners: Callable[[Batch], object]
) -> dict[str, float]:
    """Return words per second of each network, in its best pass over the text. The networks take turns."""
    best = dict.fromkeys(learners, float("inf"))
    for _ in range(repeats):
        for name, run in learners.items():
            run(batches[0])  # fills the processor's caches again
            start = time.perf_counter()
            for batch in batches:
                run(batch)
            best[name] = min(best[name], time.perf_counter() - start)
    n_words = sum(batch.n_words for batch in batches)
    return {name: n_words / seconds for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["mini", "small"])
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument(
        "--allennlp", type=Path, help="folder into which pip has installed allennlp"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--words", type=int, default=8000, help="number of words of the text")
    parser.add_argument("--batch-words", type=int, default=2000)
    parser.add_argument("--negatives", type=int, default=2048)
    parser.add_argument("--vocab-size", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    reuse_memory()
    report: dict[str, Any] = {
        **{name: value for name, value in vars(args).items() if name not in ("text", "out", "allennlp")},
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
    }  # fmt: skip
    print(f"{args.words:,} words, {args.threads} threads, torch {torch.__version__}\n")
    header = (
        "words/s",
        "plain PyTorch",
        "AllenNLP",
        "float32",
        "bfloat16",
        "float32 is",
        "bfloat16 is",
    )
    print("{:18}{:>14}{:>14}{:>14}{:>14}   {:20}{}".format(*header))
    for size in args.sizes:
        report[size] = compare(SIZES[size], args)
        for task in ("prediction", "training"):
            print(_row(f"{size} {task}", report[size][task]))
    for size in args.sizes:
        for rival, differences in report[size]["largest_differences"].items():
            listed = ", ".join(f"{name} {value:.0e}" for name, value in differences.items())
            print(f"{size}, largest relative differences of float32 from {rival}: {listed}")
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


def compare(config: BiLMConfig, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the words per second of every network in each task, and the differences between their results."""
    torch.manual_seed(0)
    bilm, head = BiLM(config), Head(args.vocab_size, config.projection)
    negatives = Negatives(args.vocab_size, args.negatives, np.random.default_rng(0))
    batches = make_batches(read_sentences(args.text, args.words), args.batch_words)
    ours = Ours(bilm, head, negatives, torch.float32)
    parameters = dict(bilm.named_parameters())
    reference = ReferenceBiLM(config, parameters)
    rivals: dict[str, Learner] = {
        "plain PyTorch": Rival(reference, list(parameters.values()), head, negatives)
    }
    if args.allennlp:
        network = AllenNLP.from_bilm(bilm, args.allennlp, trained=True)
        rivals["AllenNLP"] = Rival(network, network.parameters(), head, negatives)
    middle = batches[len(batches) // 2]
    differences = {name: check(rival, ours, middle, head) for name, rival in rivals.items()}
    learners: dict[str, Learner] = {**rivals, "float32": ours}
    if "bfloat16" in TRAINED:
        learners["bfloat16"] = Ours(bilm, head, negatives, torch.bfloat16)
    tasks: dict[str, Callable[[Learner, Batch], object]] = {
        "prediction": predict,
        "training": lambda learner, batch: train(learner, batch, head),
    }
    speeds = {
        task: measure(
            batches,
            args.repeats,
            **{name: partial(run, learner) for name, learner in learners.items()},
        )
        for task, run in tasks.items()
    }
    return {**speeds, "largest_differences": differences}


def _row(name: str, speed: dict[str, float]) -> str:
    rivals = [rival for rival in ("plain PyTorch", "AllenNLP") if rival in speed]
    cells = [f"{name:18}"] + [
        f"{speed[column]:14,.0f}" if column in speed else f"{'-':>14}"
        for column in ("plain PyTorch", "AllenNLP", "float32", "bfloat16")
    ]
    ratios = [
        " and ".join(f"{speed[ours] / speed[rival]:.1f}" for rival in rivals) + " x"
        if ours in speed
        else "-"
        for ours in ("float32", "bfloat16")
    ]
    return f"{''.join(cells)}   {ratios[0]:20}{ratios[1]}"


if __name__ == "__main__":
    main()
