"""Nanoseconds that the element-wise half of an LSTM step takes for a cell: five exponentials, and the new c and h.

The kernels apply the gates to the sums of a matrix product, which cannot be left out. Its time grows in proportion to
the width of what a step reads, and that of the gates does not: a line through the times of several widths has the time
of the gates where the width is 0. It is processor time, so other load on the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from spacy_elmo.bilm.kernels.fused_lstm import FusedDirection, has_kernel
from spacy_elmo.bilm.kernels.plain_lstm import Clips, Direction
from spacy_elmo.bilm.kernels.prepacked import prepack
from spacy_elmo.bilm.matmul_precision import Precision

DIM, ROWS, STEPS = 1024, 64, 8
WIDTHS = (16, 32, 48, 64)


def nanoseconds(precision: Precision, repeats: int) -> float:
    """Return the time of the gates, in nanoseconds a cell and step."""
    times = [_seconds(precision, width, repeats) for width in WIDTHS]
    return float(np.polynomial.Polynomial.fit(WIDTHS, times, 1)(0)) / (DIM * ROWS * STEPS) * 1e9


def _seconds(precision: Precision, width: int, repeats: int) -> float:
    """Return the least time of all steps of one direction."""
    input, recurrent = torch.randn(2, width, 4 * DIM) / width**0.5
    projection, bias = torch.randn(DIM, width) / DIM**0.5, torch.zeros(4 * DIM)
    clips = Clips(3.0, 3.0)
    direction: Direction | FusedDirection
    if has_kernel(dtype := getattr(torch, precision), bias):
        direction = FusedDirection(input, recurrent, bias, projection, clips, dtype)
    else:
        weights = (prepack(matrix, precision) for matrix in (input, recurrent, projection))
        direction = Direction(*(next(weights), next(weights)), bias, next(weights), clips)
    x = torch.randn(ROWS * STEPS, width)
    h, c = torch.zeros(ROWS, width), torch.zeros(ROWS, DIM)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        direction.run(x, h, c, [ROWS] * STEPS)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the time of the gates in each precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    with torch.no_grad():
        report = {precision: nanoseconds(precision, args.repeats) for precision in precisions}
    for precision, time_taken in report.items():
        print(f"{precision:10}{time_taken:6.2f} ns a cell")
    if args.out:
        args.out.write_text(json.dumps(report) + "\n", "utf8")


if __name__ == "__main__":
    main()
