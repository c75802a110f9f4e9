"""The same package on processors without some instructions, and without a compiler: the same vectors.

Each is a process of its own, because libraries look at the processor when they are loaded. oneDNN has a setting for
that; for our kernels, the functions that they find are replaced.
"""

import json
import os
import subprocess
import sys

import pytest
import torch

from spacy_elmo.bilm.kernels import native

PROGRAM = """
import json, sys
import torch
from spacy_elmo.bilm.kernels import native

without = sys.argv[1]
avx512_functions = native._avx512_functions
if without == "a compiler":
    native.library = lambda: {}
elif without == "AVX512":
    native._avx512_functions = lambda name: {}
elif without == "AVX512-BF16":
    native._avx512_functions = lambda name: {
        dtype: function for dtype, function in avx512_functions(name).items() if dtype == torch.float32
    }

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM

torch.set_num_threads(1)
torch.manual_seed(0)
bilm = BiLM(BiLMConfig(dim=48, projection=32, filters=((1, 8), (2, 24)), highways=1, char_dim=8, layers=2))
inputs = bilm.token_ids("She sat on the bank".split()), [0, 1, 2, 3, 4, 3, 2], [5, 2]
layers = {"trained": bilm(*inputs).layers}
layers["trained"].square().sum().backward()
for precision in ("float32", "bfloat16", "int8"):
    layers[precision] = bilm.prepare_for_inference(precision)(*inputs).layers
result = {name: values.detach().flatten().tolist() for name, values in layers.items()}
result["gradient"] = bilm.lstm[0].recurrent.grad.flatten().tolist()
print(json.dumps([native.active_kernels(), result]))
"""

ENVIRONMENTS = {
    "nothing": {},
    "AVX512-BF16": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "AVX512": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "a compiler": {},
}
"""The missing feature of a machine -> the environment of its process."""
KERNELS = {
    "AVX512-BF16": "C with AVX512; products in bfloat16 by torch",
    "AVX512": "C for gates and pooling, all products by torch: there is no AVX512",
    "a compiler": "torch alone: nothing was compiled when this package was installed",
}


def run(without: str) -> tuple[str, dict[str, torch.Tensor]]:
    environment = {**os.environ, **ENVIRONMENTS[without]}
    command = [sys.executable, "-c", PROGRAM, without]
    kernels, values = json.loads(subprocess.check_output(command, env=environment))
    return kernels, {name: torch.tensor(numbers) for name, numbers in values.items()}


@pytest.fixture(scope="module")
def here() -> dict[str, torch.Tensor]:
    kernels, values = run("nothing")
    assert kernels == native.active_kernels()
    return values


@pytest.mark.parametrize("without", KERNELS)
def test_vectors_and_gradients_are_the_same_without(without, here):
    kernels, values = run(without)
    if "AVX512-BF16 for" in native.active_kernels():  # this machine lacks nothing itself
        assert kernels == KERNELS[without]
    for name in ("trained", "float32", "gradient"):
        scale = max(1.0, float(here[name].abs().max()))
        assert (values[name] - here[name]).abs().max() < 1e-5 * scale, name
    for name in ("bfloat16", "int8"):
        assert torch.cosine_similarity(values[name], here["float32"], dim=0) > 0.999, name
