"""The biLM's matrix products for all layers of one pipeline. spaCy uses those of blis, which are slower on most
processors. The threads of numpy's products would wait for each other on a busy machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from spacy.language import Language
from thinc.api import Model, NumpyOps

from ..bilm.kernels.matmul import multiply
from ..bilm.kernels.native import functions, inference_threads


class KernelOps(NumpyOps):
    """thinc's operations on numpy arrays, with the C function for products of float32 matrices."""

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        """Multiply two matrices. `trans1` and `trans2` transpose the first and the second one."""
        left, right = torch.from_numpy(x.T if trans1 else x), torch.from_numpy(y.T if trans2 else y)
        # The C function trusts the shapes; thinc says what is wrong with them.
        if left.shape[1] != len(right) or not functions("product", left, right):
            return super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)
        if out is None:
            out = self.alloc2f(len(left), right.shape[1], zeros=False)
        with inference_threads():
            multiply(left, right, None, torch.from_numpy(out))
        return out


def kernel_products_v1() -> Callable[[Language], Language]:
    """Return the callback that lets the C kernels multiply the matrices of a pipeline's layers
    (docs/speed.md#make-it-faster)."""
    return kernel_products


def kernel_products(nlp: Language) -> Language:
    """Let the C functions multiply the matrices of this pipeline. Other pipelines of the process keep their products.

    Only plain `NumpyOps` are replaced: on a GPU and on Apple's processors, thinc has faster products of its own.
    """
    ops = KernelOps()
    for _, component in nlp.components:
        model = getattr(component, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            if type(node.ops) is NumpyOps:
                node.ops = ops
    return nlp
