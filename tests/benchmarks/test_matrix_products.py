"""The benchmark computes the same matrix products as the network."""

import pytest
import torch
from contest.contenders import Network
from contest.matrix_products import MatrixProducts, multiply
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_elmo.bilm.kernels import native
from tests import tiny

SENTENCES = [
    ["cat", "sat", "naïve"],
    ["a", "cat"],
    ["extraordinarily"],
    [f"word{number}" for number in range(50)] + ["a"] * 600,
]


class Shapes(TorchDispatchMode):
    """Records (n, k, m) and the data type of every matrix product of any library."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in ("mm", "_linear_pointwise"):
            x, weight = args[:2]
            columns = weight.shape[1] if name == "mm" else weight.shape[0]
            self.seen.append((*x.shape, columns, x.dtype))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dim", [7, 5])  # with a projection, and without
def test_same_products_as_the_network(precision, dim, monkeypatch):
    # The fused kernels multiply outside torch; the products are the same, but no dispatch mode sees them.
    monkeypatch.setattr(native, "library", lambda: None)
    model = tiny.bilm(tiny.config(dim=dim, highways=2))
    network, products = Network(model, precision), MatrixProducts(model, precision)
    for part in (SENTENCES, SENTENCES[1:]):  # the second time no word is new
        prepared = network.prepare(part, len(part))
        with Shapes() as expected:
            network.run(prepared)
        operands = products.operands(part)
        with Shapes() as computed:
            multiply(operands)
        assert len(computed.seen) > len(SENTENCES[3])
        # The network may do the halves of a step in another order, and pads a few new words.
        assert sorted(computed.seen, key=str) == sorted(expected.seen, key=str)


def test_cached_words_are_not_encoded_again():
    products = MatrixProducts(tiny.bilm(tiny.config()), "float32")
    first, second = (list(products.products([["cat", "a"]])) for _ in range(2))
    assert first[-len(second) :] and len(first) > len(second)
    assert [(n, m.shape) for n, m in first[-len(second) :]] == [(n, m.shape) for n, m in second]


def test_left_sides_fit():
    for left, right in MatrixProducts(tiny.bilm(tiny.config()), "bfloat16").operands(SENTENCES):
        assert right(left).shape[0] == len(left) and right(left).dtype == right.dtype
        assert left.dtype in (torch.float32, torch.bfloat16)
