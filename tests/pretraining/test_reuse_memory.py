"""Freed memory remains with the process, and products keep little of it."""

import os
import platform
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import sys
import torch
from spacy_elmo.pretraining.process_settings import reuse_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

def buffers():
    return [torch.ones(20, 1000, 1000, dtype=torch.uint8) for _ in range(5)]

def products(first, last):
    for rows in range(first, last):
        left[:rows] @ right.T

if sys.argv[2] == "told":
    reuse_memory()
torch.set_num_threads(1)
left, right = (torch.ones(1000, 512, dtype=torch.bfloat16) for _ in range(2))
if sys.argv[1] == "products":
    # The code of the first products takes memory of its own, and a bounded cache is full after these.
    products(150, 300)
before = resident()
buffers() if sys.argv[1] == "buffers" else products(300, 500)
print(resident() - before)
"""


def growth(kind: str) -> list[float]:
    """Return the megabytes that a process keeps, when it is told to reuse memory, and by default."""
    # The commands that other tests call in this process have set the variables here.
    environment = {name: os.environ[name] for name in os.environ if "CACHE_CAPACITY" not in name}
    return [
        float(
            subprocess.check_output([sys.executable, "-c", PROGRAM, kind, choice], env=environment)
        )
        for choice in ("told", "default")
    ]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
def test_freed_memory_is_kept():
    told, default = growth("buffers")
    assert default < 30 < 90 < told


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="bfloat16 products are not oneDNN's here",
)
def test_products_of_many_shapes_keep_little_memory():
    told, default = growth("products")
    assert told < default / 2
