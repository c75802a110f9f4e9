"""The instructions of a device are those that torch reports."""

import pytest
import torch

from spacy_elmo.bilm.kernels.instructions import has_instructions

CPU = torch.device("cpu")
AVX2 = {
    "avx2": True,
    "avx512_bf16": False,
    "amx_bf16": False,
    "avx512_vnni": False,
    "avx_vnni": False,
}
ZEN_5 = {**AVX2, "avx512_bf16": True, "avx512_vnni": True}
ARM = {"neon": True, "bf16": True}


@pytest.mark.parametrize(
    ("capabilities", "bfloat16", "int8"),
    [(AVX2, False, False), (ZEN_5, True, True), (ARM, True, None), ({}, None, None)],
)
def test_processors(monkeypatch, capabilities, bfloat16, int8):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert has_instructions("float32", CPU) is True
    assert has_instructions("bfloat16", CPU) is bfloat16
    assert has_instructions("int8", CPU) is int8


def test_versions_of_torch_that_say_nothing(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert has_instructions("bfloat16", CPU) is None


@pytest.mark.parametrize("supported", [True, False])
def test_gpus(monkeypatch, supported):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert has_instructions("bfloat16", torch.device("cuda")) is supported
    assert has_instructions("float16", torch.device("cuda")) is True
