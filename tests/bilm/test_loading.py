"""A loaded biLM has its numbers in memory once, and no part of the file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from tests import tiny


@pytest.fixture
def path(tmp_path):
    return tiny.save(tmp_path / "w.safetensors")


def overwrite(path):
    path.write_bytes(b"x" * path.stat().st_size)


def shorten(path):
    os.truncate(path, 10)


@pytest.mark.parametrize("change", [overwrite, shorten, Path.unlink])
def test_what_happens_to_the_file_afterwards(path, change):
    weights = Weights.load(path)
    model = weights.build_bilm()
    change(path)
    for name, expected in tiny.bilm(tiny.config()).state_dict().items():
        assert torch.equal(weights.tensors[name], expected)
        assert torch.equal(model.state_dict()[name], expected)


def read_file(weights, path):
    weights.save(path)
    return Weights.load(path)


def read_bytes(weights, path):
    return Weights.from_bytes(weights.to_bytes())


@pytest.mark.parametrize("read", [read_file, read_bytes])
def test_tensors_are_their_own_aligned_and_writable(tmp_path, read):
    """Products over memory with another alignment may be rounded differently in another process."""
    weights = read(Weights.from_bilm(tiny.bilm(tiny.config())), tmp_path / "w.safetensors")
    for tensor in weights.tensors.values():
        assert tensor.data_ptr() % 64 == 0
        assert tensor.untyped_storage().nbytes() == tensor.nbytes
        tensor.zero_()
    assert all(not parameter.any() for parameter in weights.build_bilm().parameters())


def test_a_file_that_becomes_shorter_while_it_is_read(path, monkeypatch):
    whole, opened = path.read_bytes(), safetensors.safe_open

    def shortened(*args):
        layout = opened(*args)
        path.write_bytes(whole[:-1])
        return layout

    monkeypatch.setattr(safetensors, "safe_open", shortened)
    with pytest.raises(ValueError, match="truncated .* too early"):
        Weights.load(path)


LOADING = """
import sys
from pathlib import Path
import torch
from spacy_elmo.bilm.weights import Weights

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

before, modules = status("VmRSS"), set(sys.modules)
Path("/proc/self/clear_refs").write_text("5")
model = Weights.load(sys.argv[1]).build_bilm()
print((status("VmHWM") - before) / Path(sys.argv[1]).stat().st_size)
print([name for name in set(sys.modules) - modules if name.startswith("torch._dynamo")])
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="resident memory is read from /proc"
)
def test_memory(tmp_path):
    """Loading needs memory of the size of the file, and no random initialization, which would import torch's
    compiler."""
    Weights.from_bilm(BiLM(BiLMConfig(dim=512, projection=256))).save(tmp_path / "w.safetensors")
    command = [sys.executable, "-c", LOADING, str(tmp_path / "w.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    growth, compiler = done.stdout.splitlines()
    assert 0.9 < float(growth) < 1.6
    assert compiler == "[]"
