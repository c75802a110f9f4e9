"""Speed of float32 matrix products on one thread, as a share of the peak of the processor's multiply-add units.

The peak is measured by a loop in C with vectors as wide as those of the kernels. Its sums stay in registers and do not
wait for each other. Product and loop take turns, and shares are medians of the pairs. The matrices are those of the
LSTM in the sizes `mini` and `small`, and one of 512 x 4096.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.kernels.abi import ABI
from spacy_elmo.bilm.kernels.panels import pack, rows_apart

SHAPES = {
    "mini": [(256, 2048), (512, 128)],
    "small": [(256, 4096), (1024, 128)],
    "large": [(512, 4096)],
}
ROWS = (16, 64)
_SUMS, _TURNS = 12, 1 << 22
_SOURCE = """
typedef float V __attribute__((vector_size(BYTES)));
float run(long turns, float factor) {
    V sums[SUMS], all = {0};
    /* Equal sums would be computed once. */
    for (int k = 0; k < SUMS; k++)
        sums[k] = all + (float)k;
    for (long turn = 0; turn < turns; turn++)
        for (int k = 0; k < SUMS; k++)
            sums[k] = sums[k] * factor + factor;
    for (int k = 0; k < SUMS; k++)
        all += sums[k];
    return all[0];
}
"""
_OPTIONS = {"avx512": ["-mavx512f", "-mprefer-vector-width=512"], "avx2": ["-mavx2", "-mfma"]}


def multiply_adds(folder: Path) -> tuple[Callable[[], object], int]:
    """Compile a loop that only multiplies and adds. Return it with its number of operations."""
    kind = native.processor() or "portable"
    size = {"avx512": 64, "avx2": 32}.get(kind, 16)
    source, library = folder / "peak.c", folder / "peak.so"
    source.write_text(_SOURCE, "utf8")
    options = [*_OPTIONS.get(kind, []), f"-DBYTES={size}", f"-DSUMS={_SUMS}"]
    command = ["cc", "-O3", "-ffp-contract=fast", "-funroll-loops", "-shared", "-fPIC"]
    subprocess.run([*command, *options, str(source), "-o", str(library)], check=True)
    run = ctypes.CDLL(str(library)).run
    run.argtypes = [ctypes.c_long, ctypes.c_float]
    return lambda: run(_TURNS, 0.5), 2 * _SUMS * size // 4 * _TURNS


def product(rows: int, inner: int, columns: int) -> tuple[Callable[[], object], int]:
    """Return some products of (rows, inner) and a prepacked (inner, columns), and their number of operations.

    The C function is called with arguments that are ready, because the network calls it from C.
    """
    left, right = rows_apart((rows, inner), torch.float32).normal_(), torch.randn(inner, columns)
    panels, sums = pack([right[:, None]], torch.float32), torch.empty(rows, columns)
    operations = 2 * rows * inner * columns
    repeats = max(1, 10**9 // operations)
    function = native.library()[f"product_float32_{native.processor()}_{ABI}"]
    fields = (
        1, rows, inner, columns, left.data_ptr(), left.stride(0), panels.data_ptr(), 0, 0, 0, 0,
        sums.data_ptr(), columns,
    )  # fmt: skip
    arguments = (ctypes.c_int64 * len(fields))(*fields)

    def run(_kept: object = (left, panels, sums)) -> None:
        for _ in range(repeats):
            function(arguments)

    return run, operations * repeats


def speed(run: Callable[[], object], operations: int) -> float:
    """Return the operations of a call per second of processor time."""
    start = time.process_time()
    run()
    return operations / (time.process_time() - start)


def main() -> None:
    """Measure the products, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    report: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        peak = multiply_adds(Path(folder))
        for size, shapes in SHAPES.items():
            for (inner, columns), rows in itertools.product(shapes, ROWS):
                run = product(rows, inner, columns)
                pairs = [(speed(*run), speed(*peak)) for _ in range(15)]
                share = statistics.median(ours / most for ours, most in pairs)
                most = max(most for _, most in pairs)
                name = f"{size}, {rows} rows, {inner} x {columns}"
                report[name] = {"share of the peak": share, "GFLOP/s of the peak": most / 1e9}
                print(f"{name:36}{share:5.0%} of {most / 1e9:.0f} GFLOP/s")
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
