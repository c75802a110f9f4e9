"""Parameter groups, learning rate and clipping."""

import pytest
import torch
from torch import nn

from spacy_elmo.pretrain.config import Training
from spacy_elmo.pretrain.optimization import clip_gradients, decay_groups, learn_rate
from tests import tiny


def test_weight_decay_leaves_biases_alone():
    bilm = tiny.bilm(tiny.config(layers=1))
    names = {id(parameter): name for name, parameter in bilm.named_parameters()}
    decayed, others = ([names[id(p)] for p in group["params"]] for group in decay_groups(bilm))
    assert set(others) == {
        "encoder.filter_biases.0", "encoder.filter_biases.1", "encoder.filter_biases.2",
        "encoder.highways.0.carry.bias", "encoder.highways.0.transform.bias", "encoder.projection.bias",
        "lstm.0.bias",
    }  # fmt: skip
    assert set(decayed) == set(names.values()) - set(others)
    assert [group.get("weight_decay") for group in decay_groups(bilm)] == [None, 0.0]


def test_learn_rate():
    settings = Training(max_steps=1, learn_rate=1.0, warmup_steps=4, cooldown=0.5)
    assert [learn_rate(settings, step, 104) for step in (0, 1, 3)] == [0.25, 0.5, 1.0]
    assert [learn_rate(settings, step, 104) for step in (4, 30, 52)] == [1.0, 1.0, 1.0]
    assert learn_rate(settings, 78, 104) == pytest.approx(0.505)
    assert learn_rate(settings, 104, 104) == learn_rate(settings, 110, 104) == pytest.approx(0.01)
    assert learn_rate(settings.model_copy(update={"cooldown": 0.0}), 103, 104) == 1.0
    assert learn_rate(settings, 1000, 0) == 1.0


@pytest.mark.parametrize("limit", [0.1, 1e6])
def test_clipping_equals_that_of_torch(limit):
    """Sparse gradients, rows named twice among them, count as the dense ones that they stand for."""
    torch.manual_seed(0)
    table, dense = nn.Parameter(torch.randn(6, 3)), nn.Parameter(torch.randn(4))
    twin_table, twin_dense = (nn.Parameter(p.detach().clone()) for p in (table, dense))
    rows = torch.tensor([1, 4, 1])
    (nn.functional.embedding(rows, table, sparse=True).sum() ** 2 + dense.pow(2).sum()).backward()
    (nn.functional.embedding(rows, twin_table).sum() ** 2 + twin_dense.pow(2).sum()).backward()
    norm = clip_gradients([table, dense, nn.Parameter(torch.zeros(1))], limit)
    assert norm == pytest.approx(
        float(nn.utils.clip_grad_norm_([twin_table, twin_dense], limit)), rel=1e-5
    )
    torch.testing.assert_close(table.grad.to_dense(), twin_table.grad)
    torch.testing.assert_close(dense.grad, twin_dense.grad)
