"""The time of a training step by kind of operation, and the speed of its matrix products beside the machine's peak.

Forward pass, sampled softmax loss and backward pass of the biLM on the batches of `rivals.py`, with torch's profiler.
The operations of the products are counted from their shapes; the peak is the fastest of a few large square products by
the same library, in the same run and type.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from contest.training_step import Ours, make_batches, train
from measuring.sentences import SAMPLE, read_sentences
from measuring.sizes import SIZES
from torch.profiler import ProfilerActivity, profile

from spacy_elmo.bilm.head import Head, Negatives
from spacy_elmo.bilm.kernels.fused_lstm_gradient import FusedLSTM
from spacy_elmo.bilm.kernels.matmul import matmul
from spacy_elmo.bilm.kernels.plain_lstm_gradient import PlainLSTM
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretrain.training.allocation import keep_freed_memory

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "mkldnn::_linear_pointwise"}
LSTM = {f"{kind.__name__}{half}" for kind in (PlainLSTM, FusedLSTM) for half in ("", "Backward")}


def peak(dtype: torch.dtype) -> float:
    """Measure the fastest large product, in GFLOP/s."""
    best = 0.0
    for size in (1024, 2048, 3072):
        a, b = (torch.randn(size, size).to(dtype) for _ in range(2))
        for _ in range(4):
            start = time.perf_counter()
            matmul(a, b)
            best = max(best, 2 * size**3 / (time.perf_counter() - start) / 1e9)
    return best


def operations(name: str, shapes: list[list[int]]) -> int:
    """Count the floating point operations of a product of these shapes."""
    if name == "aten::addmm":
        shapes = shapes[1:]
    (*batch, n, k), other = shapes[:2]
    m = other[0] if name == "mkldnn::_linear_pointwise" else other[-1]
    return 2 * n * k * m * int(np.prod(batch))


def main() -> None:
    """Profile training steps, and print a table for each size and type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["mini", "small"], choices=SIZES)
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    for size in args.sizes:
        bilm, head = BiLM(SIZES[size]), Head(50_000, SIZES[size].projection)
        negatives = Negatives(50_000, 2048, np.random.default_rng(0))
        batches = make_batches(read_sentences(args.text, args.words), 2000)
        for dtype in (torch.float32, torch.bfloat16):
            ours = Ours(bilm, head, negatives, dtype)
            for batch in batches:
                train(ours, batch, head)
            with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
                for batch in batches:
                    train(ours, batch, head)
            words = sum(batch.n_words for batch in batches)
            show(f"{size}, {str(dtype).removeprefix('torch.')}", profiler, words, peak(dtype))


def show(title: str, profiler: profile, words: int, fastest: float) -> None:
    """Print the table of one run."""
    milliseconds: Counter[str] = Counter()
    total = 0
    for event in profiler.key_averages(group_by_input_shape=True):
        kind = event.key
        if event.key in PRODUCTS:
            kind = "matrix products"
            total += event.count * operations(event.key, event.input_shapes)
        elif event.key in LSTM:
            kind = "LSTM, beside these products"
        milliseconds[kind] += event.self_cpu_time_total / 1e3
    everything = milliseconds.total()
    reached = total / milliseconds["matrix products"] / 1e6
    print(
        f"{title}: {everything / words * 1e3:.0f} ms per 1,000 words; {total / words / 1e6:.1f} MFLOP a word;"
        f" products {reached:.0f} GFLOP/s, {reached / fastest:.0%} of the peak of {fastest:.0f}"
    )
    for kind, time_taken in milliseconds.most_common(9):
        print(f"    {kind:36}{time_taken / everything:6.1%}")
    rest = everything - sum(t for _, t in milliseconds.most_common(9))
    print(f"    {'the rest':36}{rest / everything:6.1%}")


if __name__ == "__main__":
    main()
