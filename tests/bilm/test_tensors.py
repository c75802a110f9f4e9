"""Networks on the meta device have the names and shapes of parameters, but no values."""

import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import on_meta_device
from tests import tiny

CONFIGS = [
    tiny.config(), tiny.config(activation="tanh"), tiny.config(n_words=8), tiny.lexicon_config(),
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_names_and_shapes(config):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    with on_meta_device():
        meta = torch.nn.ModuleList([BiLM(config), Head(3, config.projection)])
    assert torch.equal(torch.rand(1), expected)  # nothing was drawn
    network = torch.nn.ModuleList([BiLM(config), Head(3, config.projection)])
    assert [(name, p.shape, p.dtype) for name, p in meta.named_parameters()] == [
        (name, p.shape, p.dtype) for name, p in network.named_parameters()
    ]
    assert all(p.is_meta for p in meta.parameters())
    assert all(isinstance(p, torch.nn.Parameter) for p in meta.parameters())


def test_networks_are_initialized_again_afterwards():
    with on_meta_device():
        BiLM(tiny.config())
    torch.manual_seed(0)
    one = BiLM(tiny.config())
    torch.manual_seed(0)
    for name, parameter in BiLM(tiny.config()).named_parameters():
        assert torch.equal(parameter, one.get_parameter(name))
    assert one.lstm[0].input.std() > 0.1 and not one.device.type == "meta"
