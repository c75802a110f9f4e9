"""thinc's operations on a CPU, with matrix products by numpy's BLAS instead of BLIS.

On the machine of the committed report, BLIS has a third of the speed of numpy's OpenBLAS (40 and 120 GFLOP/s), and
matrix products take most of the time of a run without ELMo.
"""

from typing import Any

from thinc.api import NumpyOps, registry


@registry.ops("evidence.NumpyOps")
class NumpyBlasOps(NumpyOps):
    """The operations that thinc uses on a CPU after the import of this module, because they have the name "numpy"."""

    name = "numpy"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "use_blis": False})
