"""The time of a training step by kind of operation, and its speed compared with the fastest matrix product.

A step is the forward pass, the sampled softmax loss and the backward pass of the biLM, on the batches of `rivals.py`.
torch counts the floating point operations of all matrix products, in a pass without the native kernels, whose
operations torch cannot count. With and without them the same matrices are multiplied, except for the gradient of the
convolutions: there the kernel needs fewer operations than torch counts.

The operations per second of the whole step are compared with those of the fastest of a few large square products, in
the same run and data type. This is the "model FLOPs utilization" of Chowdhery et al. 2022 (PaLM, section 4.1).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from contest.training_step import Batch, Ours, make_batches, train
from measuring.precisions import TRAINED
from measuring.sentences import SAMPLE, read_sentences
from measuring.sizes import SIZES
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from spacy_elmo.bilm.head import Head, LogSumExp
from spacy_elmo.bilm.kernels import matmul, native
from spacy_elmo.bilm.kernels.convolution import _Maxima
from spacy_elmo.bilm.kernels.fused_lstm_gradient import FusedLSTM
from spacy_elmo.bilm.kernels.highway import _Highway
from spacy_elmo.bilm.kernels.matmul import _Product
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.training.allocation import reuse_memory
from spacy_elmo.pretraining.training.sampled_softmax import Negatives

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm"}
KERNELS = {
    FusedLSTM: "LSTM, products and gates",
    _Highway: "highway layers",
    LogSumExp: "softmax",
    _Maxima: "convolution, products and maxima",
    _Product: "other matrix products",
}
"""Names for the operations of the native kernels."""


def peak(dtype: torch.dtype) -> float:
    """Return the operations per second of the fastest large product."""
    best = 0.0
    for size in (1024, 2048, 3072):
        a, b = (torch.randn(size, size).to(dtype) for _ in range(2))
        for _ in range(4):
            start = time.perf_counter()
            matmul.matmul(a, b)
            best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def count_operations(learner: Ours, batches: list[Batch], head: Head) -> int:
    """Count the floating point operations of all products of a pass. A multiplication and an addition are two."""
    with (
        patch.object(native, "library", lambda: None),
        FlopCounterMode(display=False) as counter,
    ):
        run(learner, batches, head)
    return counter.get_total_flops()


def run(learner: Ours, batches: list[Batch], head: Head) -> float:
    """Train on all batches, and return the seconds."""
    start = time.perf_counter()
    for batch in batches:
        train(learner, batch, head)
    return time.perf_counter() - start


def measure(learner: Ours, batches: list[Batch], head: Head, fastest: float) -> dict[str, Any]:
    """Measure the steps of some batches.

    Args:
        fastest: operations per second of the machine's fastest product.

    Returns:
        The speed, the operations, `utilization` (the step's share of `fastest`), and the shares of the time by kind of
        operation.
    """
    operations = count_operations(learner, batches, head)
    run(learner, batches, head)
    seconds = min(run(learner, batches, head) for _ in range(2))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run(learner, batches, head)
    words = sum(batch.n_words for batch in batches)
    return {
        "words per second": words / seconds,
        "MFLOP a word": operations / words / 1e6,
        "GFLOP/s": operations / seconds / 1e9,
        "GFLOP/s of the fastest product": fastest / 1e9,
        "utilization": operations / seconds / fastest,
        "shares": shares(profiler),
    }


def shares(profiler: profile) -> dict[str, float]:
    """Return the share of the time for each kind of operation, largest first."""
    names = {
        f"{kernel.__name__}{half}": name
        for kernel, name in KERNELS.items()
        for half in ("", "Backward")
    }
    microseconds: Counter[str] = Counter()
    for event in profiler.key_averages():
        name = "other matrix products" if event.key in PRODUCTS else names.get(event.key, event.key)
        microseconds[name] += event.self_cpu_time_total
    return {name: time / microseconds.total() for name, time in microseconds.most_common()}


def main() -> None:
    """Profile training steps, and print a table for each size and type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["mini", "small"], choices=SIZES)
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    reuse_memory()
    report: dict[str, dict[str, Any]] = {}
    for size in args.sizes:
        bilm, head = BiLM(SIZES[size]), Head(50_000, SIZES[size].projection)
        negatives = Negatives(50_000, 2048, np.random.default_rng(0))
        batches = make_batches(read_sentences(args.text, args.words), 2000)
        for precision in TRAINED:
            dtype = getattr(torch, precision)
            learner = Ours(bilm, head, negatives, dtype)
            result = measure(learner, batches, head, peak(dtype))
            report.setdefault(size, {})[precision] = result
            show(f"{size}, {precision}", result)
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


def show(title: str, result: dict[str, Any]) -> None:
    """Print the table of one size and type."""
    print(
        f"{title}: {result['words per second']:,.0f} words/s; {result['MFLOP a word']:.1f} MFLOP a word;"
        f" {result['GFLOP/s']:.0f} GFLOP/s, {result['utilization']:.0%} of the fastest product's"
        f" {result['GFLOP/s of the fastest product']:.0f}"
    )
    largest = list(result["shares"].items())[:9]
    for kind, share in [*largest, ("the rest", 1 - sum(share for _, share in largest))]:
        print(f"    {kind:36}{share:6.1%}")


if __name__ == "__main__":
    main()
