"""The matrix products of the runs."""

import subprocess
import sys

from tests.evidence.folders import EVIDENCE

# In a process of its own: what is registered stays.
PRODUCTS = """
import sys
import experiments.training, numpy
from thinc.api import require_cpu
from thinc.backends import get_current_ops
sys.argv = ["training", "plan.yml", "small", "none/such-0"]
try:
    experiments.training.main()
except SystemExit as end:
    assert "has no run" in str(end)
require_cpu()
ops = get_current_ops()
a, b = (numpy.random.default_rng(k).normal(size=(5, 7)).astype("f") for k in (0, 1))
numpy.testing.assert_allclose(ops.gemm(a, b, trans2=True), a @ b.T, rtol=1e-5)
print(type(ops).__name__, ops.use_blis)
"""


def test_what_thinc_takes_for_a_cpu():
    """spaCy's `train` asks for it anew, so that it has to be what thinc finds."""
    command = [sys.executable, "-W", "ignore", "-c", PRODUCTS]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["NumpyBlasOps", "False"]
