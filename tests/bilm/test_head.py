"""The softmax layer: its loss equals the oracle, whatever the blocks."""

import pytest
import torch

from spacy_elmo.bilm import head as head_module
from spacy_elmo.bilm.head import Head, log_softmax
from spacy_elmo.bilm.kernels import native
from tests import oracle

WORDS, WIDTH = 30, 5


def make(words=WORDS, rows=7, seed=0):
    """Return a head with random W and b, outputs (M, P) and targets (M,). The first word is a frequent target."""
    torch.manual_seed(seed)
    head = Head(words, WIDTH)
    with torch.no_grad():
        head.bias.normal_()
    hidden = torch.randn(rows, WIDTH)
    targets = torch.randint(words, (rows,))
    targets[: rows // 2] = 0
    return head, hidden, targets


def arrays(head):
    return (
        head.weight.detach().double().numpy(),
        head.bias.detach().double().squeeze(1).numpy(),
    )


@torch.no_grad()
@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("block", [1, 2, 1024])
def test_full_loss_equals_the_oracle(rows, block, monkeypatch):
    monkeypatch.setattr(head_module, "_ROWS_PER_BLOCK", block)
    head, hidden, targets = make(rows=rows)
    expected = oracle.full_loss(hidden, targets, *arrays(head))
    torch.testing.assert_close(head.full_loss(hidden, targets).double(), torch.as_tensor(expected))


@pytest.mark.skipif(not native.processor(), reason="torch's sums depend on their processor")
@pytest.mark.parametrize("words", [1, 15, 16, 300])
def test_log_softmax_of_a_row_is_the_same_by_every_kernel_and_beside_any_rows(words, monkeypatch):
    torch.manual_seed(words)
    scores = 3 * torch.randn(9, words)
    scores[1, : words // 2] = -torch.inf
    expected = scores.double().log_softmax(1)
    found = log_softmax(scores)
    torch.testing.assert_close(found.double(), expected, atol=2e-6, rtol=1e-6)
    for kind in (*native.processors(), "portable"):
        monkeypatch.setenv(native.CHOICE, kind)
        assert torch.equal(log_softmax(scores), found)
        assert all(torch.equal(log_softmax(scores[n:]), found[n:]) for n in range(9))


def test_blocks_are_smaller_for_more_words(monkeypatch):
    head, *_ = make()
    sizes = []
    for logits in (1, 2 * WORDS, 3 * WORDS - 1, 1 << 40):
        monkeypatch.setattr(head_module, "_LOGITS_PER_BLOCK", logits)
        sizes.append(head.rows_per_block)
    assert sizes == [1, 2, 2, 1024]
