"""The matrix products of the runs are computed by numpy."""

import subprocess
import sys

import pytest

from tests.evidence.folders import EVIDENCE

# In a process of its own: what is registered stays.
PRODUCTS = """
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy
from thinc.api import require_cpu
from thinc.backends import get_current_ops
{work}
ops = get_current_ops()
a, b = (numpy.random.default_rng(k).normal(size=(5, 7)).astype("f") for k in (0, 1))
numpy.testing.assert_allclose(ops.gemm(a, b, trans2=True), a @ b.T, rtol=1e-5)
print(type(ops).__name__, ops.use_blis)
"""
# As spaCy's `train` does, in place of the training.
A_RUN = """
from experiments import run
run.carry_out = lambda it: require_cpu() and 0.0
run.train(SimpleNamespace(name="a"))
"""
PRETRAINING = """
from experiments import pretrained_tok2vec
pretrained_tok2vec.pretrain = lambda config, out, silent: Path(out, "model-last.bin").touch()
pretrained_tok2vec.train("ner", Path("plan.yml"), Path(sys.argv[1]))
"""


@pytest.mark.parametrize("work", [A_RUN, PRETRAINING])
def test_what_thinc_takes_for_a_cpu(work, tmp_path):
    script = PRODUCTS.replace("{work}", work)
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "out.bin")]
    done = subprocess.run(command, cwd=EVIDENCE, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["NumpyBlasOps", "False"]
