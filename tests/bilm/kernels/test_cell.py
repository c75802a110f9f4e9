"""The element-wise part of an LSTM step, by torch and by C, is compared with the formulas in float64."""

import math
import shutil

import pytest
import torch

from spacy_elmo.bilm.kernels import cell
from spacy_elmo.bilm.kernels import native as native

TYPES = [torch.float64, torch.float32, torch.bfloat16]
# One number, less than a vector of any processor, some vectors and a rest, vectors alone.
SIZES = [(1, 1), (3, 7), (2, 33), (5, 64)]
TOLERANCE = {torch.float64: 1e-14, torch.float32: 2e-6, torch.bfloat16: 2e-2}


def test_it_is_compiled_where_there_is_a_compiler():
    assert native.library() or not (shutil.which("gcc") or shutil.which("clang"))


def formulas(inputs, recurrent, bias, clip, c):
    """Compute the formulas in the docstring of `forward`, for any leaf tensors."""
    i, j, f, o = (inputs + recurrent + bias).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * j.tanh()
    if clip is not None:
        c = c.clamp(-clip, clip)
    return o.sigmoid() * c.tanh(), c


def arguments(n, dim, low, scale=1.0):
    torch.manual_seed(n * dim)
    state = torch.float64 if low == torch.float64 else torch.float32
    inputs, recurrent = (scale * torch.randn(n, 4 * dim)).to(low), torch.randn(n, 4 * dim).to(low)
    return inputs, recurrent, torch.randn(4 * dim, dtype=state), torch.randn(n, dim, dtype=state)


@pytest.mark.parametrize("low", TYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("clip", [None, 0.5])
@torch.no_grad()
def test_forward(implementation, low, size, clip):
    inputs, recurrent, bias, c = arguments(*size, low)
    found = cell.forward(inputs, recurrent, bias, clip, c)
    wide = [t.double() for t in (inputs, recurrent, bias, c)]
    expected = formulas(*wide[:3], clip, wide[3])
    # What is added is exact, even where the summands are of low precision; only `hidden` is rounded to it.
    for got, wanted, tolerance in zip(
        found, expected, (TOLERANCE[low], TOLERANCE[c.dtype]), strict=True
    ):
        torch.testing.assert_close(got.double(), wanted, atol=tolerance, rtol=0)


@pytest.mark.parametrize("low", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_gates_that_are_far_out(implementation, low):
    """Beyond the range of e^x, gates are open or closed, not infinite. NaN stays NaN."""
    inputs, recurrent, bias, c = arguments(2, 8, low)
    inputs[:, ::2], inputs[:, 1::2] = 1e30, -1e30
    hidden, _ = cell.forward(inputs, recurrent, bias, 3.0, c)
    expected, _ = formulas(inputs.double(), recurrent.double(), bias.double(), 3.0, c.double())
    torch.testing.assert_close(hidden.double(), expected, atol=TOLERANCE[low], rtol=0)
    inputs[0, 0] = math.nan
    hidden, c = cell.forward(inputs, recurrent, bias, 3.0, c)
    assert hidden[0, 0].isnan() and c[0, 0].isnan()
    assert hidden[1].isfinite().all() and hidden[0, 1:].isfinite().all()


@pytest.mark.skipif(not native.library(), reason="there is no compiler")
@pytest.mark.parametrize("low", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_a_row_does_not_depend_on_the_others(low):
    inputs, recurrent, bias, c = arguments(5, 37, low)
    whole = cell.forward(inputs, recurrent, bias, 3.0, c)
    for row in range(5):
        part = slice(row, row + 1)
        alone = cell.forward(inputs[part], recurrent[part], bias, 3.0, c[part])
        assert all(torch.equal(a, b[part]) for a, b in zip(alone, whole, strict=True))
