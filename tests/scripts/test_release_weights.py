"""Rounding of a head for shipping."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from release_weights import shorten


def test_shortened_numbers_are_the_nearest_of_eight_bits():
    values = torch.randn(10_000, generator=torch.Generator().manual_seed(0)).half()
    short = shorten(values)
    # bfloat16 has the same 8 significant bits, and these values are normal numbers in both types. Ties go to the even
    # number there and away from zero here.
    bfloat16 = values.bfloat16().half()
    tied = (values.float() - bfloat16.float()).abs() == (values.float() - short.float()).abs()
    normal = values.abs() >= 2.0**-14
    assert bool((tied | ~normal).all())
    assert bool(((short == bfloat16) | tied).all())
    assert set((short.view(torch.int16) & 7).tolist()) == {0}
    assert shorten(torch.tensor([1.0, -1.0, 0.0, 1.0078125]).half()).tolist() == [
        1.0,
        -1.0,
        0.0,
        1.0078125,
    ]
