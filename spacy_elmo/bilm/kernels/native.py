"""Access to the C functions of this folder ("kernels"). The functions exist if a compiler was available when
the package was installed.

Each function is compiled several times, for several instruction sets, such as "avx2". The package uses the
fastest instruction set that this processor supports. In float32 all instruction sets compute the same bits.

Each function has an equivalent in torch operators for other data types, for other devices, and for
installations without a compiler. The equivalents add numbers in another order.

The functions read a weight matrix as panels: strips of 16 columns (see `pack`). Each panel is stored row after row,
so that a kernel reads contiguous memory. In bfloat16 two rows are interleaved, because instructions multiply pairs
of numbers and add both products.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = Tensor | np.ndarray

ABI = 9
"""Version number of the argument lists of the C functions. `setup.py` adds it to their names, so that Python never
calls functions of an older compiled library with wrong arguments. If you change an argument list, increase it."""
CHOICE = "SPACY_ELMO_KERNELS"
"""Name of the environment variable with which tests select the kernels for another instruction set. The value
of the variable is one of `processors()`, or "portable". The bits of float32 results do not change."""
THREADS = "SPACY_ELMO_THREADS"
"""Name of the environment variable with the number of threads in prediction."""
_KINDS = ("avx512", "avx2", "neon", "portable")
"""The instruction sets for which kernels are compiled, fastest first. "portable" is plain C."""
_PANEL = 16
ROW_GAP = 32
"""Numbers between two rows of a matrix. A matrix product reads several rows at once. Without the gap, rows at a
distance of a power of two would compete for the same few lines of the processor's cache."""
# Rows and columns that are packed at once, as in weight_gradient.c.
_GRADIENT_ROWS, _GRADIENT_COLUMNS = 1024, 256


def active_kernels() -> str:
    """Return a short text about the kernels in use. The text also says whether float32 results have the same
    bits on all machines."""
    if (kind := processor()) is None:
        why = "no AVX2 and FMA for those in C" if library() else "nothing was compiled"
        return f"torch alone, float32 is not exact: {why}"
    more = " and bfloat16" if torch.bfloat16 in functions("fused_forward") else ""
    return f"C for {kind}{more}; float32 is exact, the same bits everywhere"


def processor() -> str | None:
    """Return the instruction set of the kernels in use, such as "avx2". Return None if no kernels are used."""
    if library() is None:
        return None
    kinds = processors()
    if chosen := os.environ.get(CHOICE):
        # The portable kernels run everywhere, but they are slow without an instruction that multiplies and adds.
        if chosen not in (*kinds, "portable"):
            raise ValueError(
                f"{CHOICE}={chosen}, but this machine supports {', '.join([*kinds, 'portable'])}"
            )
        return chosen
    return kinds[0] if kinds else None


@cache
def processors() -> list[str]:
    """Return the instruction sets with kernels that run fast on this processor, the fastest first."""
    return [kind for kind in _KINDS if _runs(f"float32_{kind}")]


def functions(name: str, *tensors: Tensor | None) -> dict[torch.dtype, Any]:
    """Return a dict with the C function `name` for each data type in which it can multiply. The dict is empty if
    there are no kernels, or if one of `tensors` is not float32 on the CPU, which kernels require.

    In C, each function takes one structure, which is documented in the C file. In Python, pass the fields of
    the structure as positional arguments.
    """
    kind = processor()
    usual = all(t is None or (t.is_cpu and t.dtype == torch.float32) for t in tensors)
    return _functions(name, kind) if kind is not None and usual else {}


@cache
def _functions(name: str, kind: str) -> dict[torch.dtype, Any]:
    found = {}
    for dtype, variant in (
        (torch.float32, f"float32_{kind}"),
        (torch.bfloat16, f"bfloat16_{kind}"),
    ):
        function = getattr(library(), f"{name}_{variant}_{ABI}", None)
        if function is not None and (dtype == torch.float32 or _runs(variant)):
            function.restype = None
            found[dtype] = _with_fields(function)
    return found


def _runs(variant: str) -> bool:
    function = getattr(library(), f"here_{variant}_{ABI}", None)
    return bool(function and function())


def _with_fields(function: Any) -> Any:
    # Each field has 8 bytes: int64_t, double or a pointer.
    return lambda *fields: function((ctypes.c_int64 * len(fields))(*map(_bits, fields)))


def _bits(field: Array | float | None) -> int:
    """Convert an argument of a C function to an integer of 64 bits: an array to the address of its memory, a
    float to its bits, and None to 0."""
    if isinstance(field, Tensor):
        return field.data_ptr()
    if isinstance(field, np.ndarray):
        return torch.from_numpy(field).data_ptr()  # faster than `field.ctypes.data`
    if isinstance(field, float):
        return struct.unpack("q", struct.pack("d", field))[0]
    return field or 0


def path() -> Path:
    """Return the path of the compiled library. The file exists if the library was built."""
    return Path(__file__).with_name("_native.so")


@cache
def library() -> ctypes.CDLL | None:
    """Load the compiled library. Return None if there is no library, if the library was built for another
    machine, or if its functions have another version number than `ABI`."""
    try:
        native = ctypes.CDLL(str(path()))
    except OSError:
        return None
    if not hasattr(native, f"here_float32_portable_{ABI}"):
        return None
    _use_torch_threads(native)
    return native


def _use_torch_threads(library: ctypes.CDLL) -> None:
    """Let the C functions run in torch's own threads, if torch's OpenMP library contains the OpenMP functions
    of GCC."""
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    if all(hasattr(_process(), name) for name in names):
        library.spacy_elmo_use_torch_threads(*(getattr(_process(), name) for name in names))


@cache
def _process() -> ctypes.CDLL | None:
    # Windows cannot look up a function in all libraries of the process.
    return None if sys.platform == "win32" else ctypes.CDLL(None)


@cache
def one_thread_after_fork() -> None:
    """Restrict torch to one thread in processes that are forked from now on.

    A fork copies the memory of torch's thread pool but not its threads. The first parallel operation in the child
    process would wait for these threads forever.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextlib.contextmanager
def inference_threads() -> Iterator[None]:
    """Create a context in which torch and the C functions compute in the calling thread alone, or in as many threads
    as the environment variable `THREADS` says.

    OpenMP's threads wait for each other after each operation, for a long time if another process keeps a core busy.
    Other threads of this process keep torch's number, which `torch.set_num_threads` would change.
    """
    before, set_threads = torch.get_num_threads(), getattr(_process(), "omp_set_num_threads", None)
    if set_threads is None:
        yield
        return
    set_threads(int(os.environ.get(THREADS, "1")))
    try:
        yield
    finally:
        set_threads(before)


def weight_gradient(left: Tensor, right: Tensor, into: Tensor | None = None) -> Tensor:
    """Compute the gradient of a weight matrix: the transpose of `left` times `right`. The product is not rounded
    to a type below float32.

    Args:
        left: the inputs of a layer, (rows, inputs).
        right: the gradient of the outputs, (rows, outputs), in the data type of `left`.
        into: contiguous float32 tensor (inputs, outputs) to which the product is added; None: a new tensor.

    Returns:
        (inputs, outputs) float32, or float64 for float64 matrices.
    """
    if not left.is_cpu or (function := functions("weight_gradient").get(left.dtype)) is None:
        product = left.t() @ right
        product = product.to(torch.promote_types(product.dtype, torch.float32))
        return product if into is None else into.add_(product)
    left, right = (t if t.stride(1) == 1 else t.contiguous() for t in (left, right))
    (n, k), m = left.shape, right.shape[1]
    # Not with torch's default type and device, which the user can change.
    sums = left.new_empty((k, m), dtype=torch.float32) if into is None else into
    if not n:
        return sums if into is not None else sums.zero_()
    rows = min(n + n % 2, _GRADIENT_ROWS)
    left_scratch = left.new_empty(padded(k) * rows)
    right_scratch = right.new_empty(padded(m, _GRADIENT_COLUMNS) * rows)
    function(
        torch.get_num_threads(), n, left, left.stride(0), k, right, right.stride(0), m,
        sums, m, into is not None, left_scratch, right_scratch,
    )  # fmt: skip
    return sums


def pack(parts: Sequence[Tensor], compute_dtype: torch.dtype) -> Tensor:
    """Stack matrices vertically, and cut the result into panels (strips of 16 columns): (panels, rows, 16).

    Before stacking, each matrix is padded to a multiple of 16 rows.

    Args:
        parts: the matrices, (rows, 1, columns) each; or, for the four gates of an LSTM, (rows, 4, columns per
            gate) each. With gates, the first panel of each of the four gates comes first, then the second
            panel of each gate, and so on.
        compute_dtype: data type of the result.
    """
    heights = [padded(len(part)) for part in parts]
    blocks, columns = parts[0].shape[1:]
    panels = -(-columns // _PANEL) * blocks
    packed = parts[0].new_empty((panels, sum(heights), _PANEL), dtype=compute_dtype)
    start = 0
    for part, height in zip(parts, heights, strict=True):
        inner, by_gate, column = part.stride()
        functions("pack_panels")[compute_dtype](
            panels, height, len(part), columns, blocks, part, inner, column, by_gate,
            packed[:1, start:], packed.stride(0),
        )  # fmt: skip
        start += height
    return packed


def addresses(tensors: Sequence[Tensor | None]) -> Tensor:
    """Return the addresses of tensors, as an array of pointers for a C function; 0 for None. The caller keeps the
    tensors."""
    pointers = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
    return torch.tensor(pointers, dtype=torch.int64, device="cpu")


def half_of(panels: Tensor) -> Tensor | None:
    """Return float32 panels in float16, or None if float16 cannot represent all numbers exactly. It can if the weights
    come from a float16 file, such as the bundled ones."""
    half = panels.half()
    return half if torch.equal(half.float(), panels) else None


def rows_apart(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Allocate a matrix with a gap in memory after each row (see `ROW_GAP`)."""
    rows, columns = shape
    return torch.empty((rows, columns + ROW_GAP), dtype=dtype, device="cpu")[:, :columns]


def padded(size: int, to: int = _PANEL) -> int:
    """Return `size`, rounded up to a multiple of `to`. The default is 16, the width of a panel."""
    return -(-size // to) * to
