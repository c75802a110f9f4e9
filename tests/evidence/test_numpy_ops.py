"""The matrix products of the runs."""

import subprocess
import sys

import pytest

from tests.evidence.folders import EVIDENCE

# In a process of its own: what is registered stays.
PRODUCTS = """
import importlib, sys
import numpy
from thinc.api import require_cpu
from thinc.backends import get_current_ops
module, *sys.argv[1:] = sys.argv[1:]
try:
    importlib.import_module(f"experiments.{module}").main()
except SystemExit as end:
    assert "has no run" in str(end) or "no such file" in str(end)
if module == "training":
    require_cpu()  # as spaCy's `train` does
ops = get_current_ops()
a, b = (numpy.random.default_rng(k).normal(size=(5, 7)).astype("f") for k in (0, 1))
numpy.testing.assert_allclose(ops.gemm(a, b, trans2=True), a @ b.T, rtol=1e-5)
print(type(ops).__name__, ops.use_blis)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["training", "plan.yml", "small", "none/such-0"],
        ["pretrained_tok2vec", "ner", "absent.jsonl", "out.bin"],
    ],
)
def test_what_thinc_takes_for_a_cpu(arguments):
    command = [sys.executable, "-W", "ignore", "-c", PRODUCTS, *arguments]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["NumpyBlasOps", "False"]
