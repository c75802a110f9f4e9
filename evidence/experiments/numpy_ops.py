"""thinc's operations on a CPU with the matrix products of models by numpy's BLAS.

On the machine of the committed report BLIS, which thinc uses for them, has a third of the speed of numpy's OpenBLAS
(40 against 120 GFLOP/s), and products are most of what a run without ELMo costs.
"""

from typing import Any

from thinc.api import NumpyOps, registry


@registry.ops("evidence.NumpyOps")
class NumpyBlasOps(NumpyOps):
    """The operations that thinc uses on a CPU once this module is imported: those named numpy."""

    name = "numpy"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "use_blis": False})
