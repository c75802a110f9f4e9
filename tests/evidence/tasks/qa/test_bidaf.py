"""BiDAF is compared with its formulas, token by token."""

import pytest
import torch
from tasks.qa.bidaf import Bidaf
from torch.testing import assert_close

WIDTH = 6


@pytest.fixture
def bidaf():
    torch.manual_seed(0)
    return Bidaf(WIDTH, dropout=0.5).eval()


def lengths(*numbers):
    return torch.tensor(numbers)


@torch.no_grad()
def test_attention_flow_token_by_token(bidaf):
    torch.manual_seed(1)
    question, context = torch.randn(1, 3, WIDTH), torch.randn(1, 5, WIDTH)
    q = bidaf.encode(question, lengths(3))[0]
    c = bidaf.encode(context, lengths(5))[0]
    weight = torch.cat([bidaf.of_context.weight[0], bidaf.of_question.weight[0], bidaf.of_both])
    similarity = torch.stack(
        [
            torch.stack([weight @ torch.cat([t, j, t * j]) + bidaf.of_context.bias[0] for j in q])
            for t in c
        ]
    )
    relevance = similarity.max(dim=1).values.softmax(0)
    relevant = sum(b * t for b, t in zip(relevance, c, strict=True))
    merged = []
    for t, row in zip(c, similarity, strict=True):
        asked = sum(a * j for a, j in zip(row.softmax(0), q, strict=True))
        merged.append(bidaf.merge(torch.cat([t, asked, t * asked, t * relevant])))
    merged = torch.stack(merged)[None]
    m = bidaf.read(merged, lengths(5))
    m_end = bidaf.read_end(m, lengths(5))
    expected = torch.cat(
        [bidaf.start(torch.cat([merged, m], 2)), bidaf.end(torch.cat([merged, m_end], 2))], 2
    )
    assert_close(bidaf(question, lengths(3), context, lengths(5)), expected)


@torch.no_grad()
def test_padding_changes_nothing(bidaf):
    torch.manual_seed(1)
    question, context = torch.randn(2, 4, WIDTH), torch.randn(2, 7, WIDTH)
    question[1, 2:] = 0
    context[1, 3:] = 0
    together = bidaf(question, lengths(4, 2), context, lengths(7, 3))
    alone = bidaf(question[1:, :2], lengths(2), context[1:, :3], lengths(3))
    assert_close(together[1:, :3], alone)
