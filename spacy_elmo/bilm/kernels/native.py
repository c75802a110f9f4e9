"""The functions of the C files beside this one, where a compiler was there when the package was installed.

Each is one pass over memory where torch's operators take many, and each has a twin in torch's operators, which is used
for other types, on other devices, and where nothing was compiled.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .abi import ABI

_SIZE, _POINTER, _NUMBER = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
# Of the functions in plain C; the others take one structure. Whoever changes a list raises `ABI`.
_ARGUMENTS = {
    "cell_forward": [_SIZE] * 3 + [_POINTER] * 3 + [_NUMBER] + [_POINTER] * 4,
    "cell_backward": [_SIZE] * 2 + [_POINTER] * 4 + [_NUMBER] + [_POINTER] * 3,
    "maximum": [_SIZE] * 3 + [_POINTER] * 3,
    "spread": [_SIZE] * 3 + [_POINTER] * 3,
    "softmax_terms": [_SIZE] * 2 + [_POINTER] * 5,
    "quantize": [_SIZE] * 3 + [_POINTER] * 3,
    "dequantize": [_SIZE] * 3 + [_POINTER] * 3,
}
_FLOAT32_ALONE = ("quantize", "dequantize")
_SUFFIXES = {torch.float32: f"float32_{ABI}", torch.bfloat16: f"bfloat16_{ABI}"}


def active_kernels() -> str:
    """Return in a few words which kernels compute on this machine."""
    if not library():
        return "torch alone: nothing was compiled when this package was installed"
    types = avx512_functions("fused_forward")
    if torch.bfloat16 in types:
        return "C with AVX512, and AVX512-BF16 for bfloat16"
    if torch.float32 in types:
        return "C with AVX512; products in bfloat16 by torch"
    return "C for gates and pooling, all products by torch: there is no AVX512"


def native_function(name: str, tensor: Tensor, *sums: Tensor) -> Any:
    """The C function of this name for the tensor's type and device; None if there is none, or if `sums`, which C takes
    as float32, are of another type."""
    if not tensor.is_cpu or any(t.dtype != torch.float32 for t in sums):
        return None
    return library().get((name, tensor.dtype))


def avx512_functions(name: str) -> dict[torch.dtype, Any]:
    """Return the C functions of this name by the type of their products, for which this processor has the instructions:
    AVX512, and AVX512-BF16 for bfloat16. Each takes one structure."""
    return _avx512_functions(name) if library() else {}


@cache
def _avx512_functions(name: str) -> dict[torch.dtype, Any]:
    functions, library = {}, ctypes.CDLL(str(path()))
    for dtype, suffix in _SUFFIXES.items():
        # GCC alone compiles them, for x86 alone.
        here = getattr(library, f"avx512_here_{suffix}", None)
        function = getattr(library, f"{name}_{suffix}", None)
        if here is not None and here() and function is not None:
            functions[dtype] = _with_structure(function)
    return functions


def _with_structure(function: Any) -> Any:
    function.restype = None
    return lambda structure: function(ctypes.byref(structure))


def address(tensor: Tensor | None) -> int | None:
    """Return the address of a contiguous tensor's first number; None, which is passed as NULL, for None."""
    return None if tensor is None else tensor.data_ptr()


def path() -> Path:
    """Return the path of the compiled library, which exists if one was built."""
    return Path(__file__).with_name("_native.dll" if sys.platform == "win32" else "_native.so")


@cache
def library() -> dict[tuple[str, torch.dtype], Any]:
    """All functions by name and type; empty if nothing was compiled."""
    try:
        native = ctypes.CDLL(str(path()))
        _use_torch_threads(native)
        return _functions(native)
    # Not built, or for another machine, or from sources with another ABI.
    except (OSError, AttributeError):
        return {}


def _functions(library: ctypes.CDLL) -> dict[tuple[str, torch.dtype], Any]:
    functions = {}
    for name, types in _ARGUMENTS.items():
        for dtype, suffix in _SUFFIXES.items():
            if name in _FLOAT32_ALONE and dtype != torch.float32:
                continue
            function = functions[name, dtype] = getattr(library, f"{name}_{suffix}")
            function.argtypes, function.restype = types, None
    return functions


def _use_torch_threads(library: ctypes.CDLL) -> None:
    """Let C share rows among torch's own threads (`threads.c`), where torch's OpenMP library has GCC's functions."""
    if sys.platform == "win32":
        return  # which has no way to ask for what is in the process already
    process = ctypes.CDLL(None)
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    if all(hasattr(process, name) for name in names):
        library.spacy_elmo_use_torch_threads(*(getattr(process, name) for name in names))
