"""Nanoseconds per cell for the gates of an LSTM step: five exponentials, and the new c and h.

The fused kernel computes the gates together with a matrix product. The time of the product is proportional to the width
of the step's input, but the time of the gates does not depend on it. So several widths are measured, and a line through
their times is extended to the width 0: there it shows the time of the gates. There is no projection, because its time
would be counted as time of the gates. Times are processor times, so other load has little effect.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measuring.precisions import TRAINED

from spacy_elmo.bilm.kernels import cell
from spacy_elmo.bilm.kernels.fused_lstm import FusedDirection
from spacy_elmo.bilm.kernels.native import has_kernels
from spacy_elmo.bilm.kernels.plain_lstm import Clips
from spacy_elmo.bilm.matmul_precision import Precision

DIM, ROWS, STEPS = 1024, 64, 8
WIDTHS = (16, 32, 48, 64)


def nanoseconds(precision: Precision, repeats: int) -> float:
    """Return the time of the gates, in nanoseconds per cell and step."""
    dtype = getattr(torch, precision)
    if has_kernels(dtype, torch.zeros(1)):
        times = [least_time(_fused(dtype, width), repeats) for width in WIDTHS]
        seconds = float(np.polynomial.Polynomial.fit(WIDTHS, times, 1)(0))
    else:
        seconds = least_time(_plain(dtype), repeats)
    return seconds / (DIM * ROWS * STEPS) * 1e9


def least_time(run: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of a call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def _fused(dtype: torch.dtype, width: int) -> Callable[[], object]:
    """Return a function that runs all steps of one direction. Its outputs are the first `width` cells."""
    input, recurrent = torch.randn(2, width, 4 * DIM) / width**0.5
    direction = FusedDirection(input, recurrent, torch.zeros(4 * DIM), None, Clips(3.0, 3.0), dtype)
    x = torch.randn(ROWS * STEPS, width)
    h, c = torch.zeros(ROWS, width), torch.zeros(ROWS, DIM)
    return lambda: direction.run(x, h, c, [ROWS] * STEPS)


def _plain(dtype: torch.dtype) -> Callable[[], object]:
    """Return a function that computes the gates of all steps, which are a separate pass without the fused kernel."""
    inputs, recurrent = torch.randn(2, ROWS, 4 * DIM).to(dtype)
    bias, c = torch.zeros(4 * DIM), torch.zeros(ROWS, DIM)

    @torch.no_grad()
    def run() -> None:
        for _ in range(STEPS):
            cell.forward(inputs, recurrent, bias, 3.0, c)

    return run


def main() -> None:
    """Measure and print the time of the gates in each precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        report = {precision: nanoseconds(precision, args.repeats) for precision in TRAINED}
    for precision, time_taken in report.items():
        print(f"{precision:10}{time_taken:6.2f} ns per cell")
    if args.out:
        args.out.write_text(json.dumps(report) + "\n", "utf8")


if __name__ == "__main__":
    main()
