"""On other processors, all kernels compute the same bits; without a compiler, the vectors are nearly the same.

Each test runs in its own process, because torch looks at the processor when it is loaded. Other processors are
simulated: for our kernels by the variable that chooses them, for oneDNN by a variable of its own.
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

if sys.argv[1] == "a compiler":
    native.library = lambda: None

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from tests import tiny

torch.set_num_threads(1)
torch.manual_seed(0)
bilm = BiLM(BiLMConfig(dim=48, projection=32, filters=((1, 8), (2, 24)), highways=1, char_dim=8, layers=2))
head = Head(100, 32)
sentences = "She sat on the bank".split(), ["the", "on"]
layers = {"trained": tiny.forward(bilm, sentences).layers}
(layers["trained"].square().sum() + head.full_loss(layers["trained"][2, :, :32], torch.arange(7)).sum()).backward()
for precision in ("float32", "bfloat16"):
    layers[precision] = tiny.forward(bilm.prepare_for_inference(precision), sentences).layers
result = {name: values.detach().flatten().tolist() for name, values in layers.items()}
for name, parameter in {**dict(bilm.named_parameters()), **dict(head.named_parameters())}.items():
    result["gradient of " + name] = parameter.grad.flatten().tolist()
print(json.dumps([native.active_kernels(), result]))
"""

# Each but the last has kernels.
ENVIRONMENTS = {
    "nothing": {},
    "AVX512": {native.CHOICE: "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "any instructions": {native.CHOICE: "portable"},
    "a compiler": {},
}
"""What a machine lacks -> the environment of its process."""


def run(without: str) -> dict[str, torch.Tensor]:
    environment = {**os.environ, **ENVIRONMENTS[without]}
    command = [sys.executable, "-c", PROGRAM, without]
    kernels, values = json.loads(subprocess.check_output(command, env=environment))
    if chosen := ENVIRONMENTS[without].get(native.CHOICE):
        assert chosen in kernels
    if without == "a compiler":
        assert kernels.startswith("torch alone, float32 is not exact")
    return {name: torch.tensor(numbers) for name, numbers in values.items()}


@pytest.fixture(scope="module")
def here() -> dict[str, torch.Tensor]:
    return run("nothing")


@pytest.mark.skipif(not native.library(), reason="there is no compiler")
@pytest.mark.parametrize("without", ["AVX512", "any instructions"])
def test_the_same_bits_without(without, here):
    if without == "AVX512" and "avx2" not in native.processors():
        pytest.skip("needs AVX2")
    values = run(without)
    for name in here:
        if name != "bfloat16":
            assert torch.equal(values[name], here[name]), name


@pytest.mark.parametrize("without", ["AVX512", "a compiler"])
def test_nearly_the_same_vectors_and_gradients_without(without, here):
    if without == "AVX512" and "avx2" not in native.processors():
        pytest.skip("needs AVX2")
    values = run(without)
    for name in here:
        scale = max(1.0, float(here[name].abs().max()))
        if name == "bfloat16":
            assert torch.cosine_similarity(values[name], here["float32"], dim=0) > 0.999, name
        else:
            assert (values[name] - here[name]).abs().max() < 1e-5 * scale, name


def test_a_kind_that_does_not_run_here(monkeypatch):
    monkeypatch.setenv(native.CHOICE, "vax")
    if native.library():
        with pytest.raises(ValueError, match="vax.*portable"):
            native.functions("product")
