"""Freed memory remains with the process."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
from spacy_elmo.pretrain.training.allocation import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

if sys.argv[1] == "keep":
    keep_freed_memory()
before = resident()
buffers = [torch.ones(20, 1000, 1000, dtype=torch.uint8) for _ in range(5)]
del buffers
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators are not told")
def test_freed_memory_is_kept():
    growth = {
        choice: float(subprocess.check_output([sys.executable, "-c", PROGRAM, choice]))
        for choice in ("keep", "default")
    }
    assert growth["default"] < 30 < 90 < growth["keep"]
