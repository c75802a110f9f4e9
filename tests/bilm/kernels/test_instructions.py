"""The instructions of a device are those that torch reports."""

import pytest
import torch

from spacy_elmo.bilm.kernels.matmul import has_bfloat16

CPU = torch.device("cpu")
AVX2 = {"avx2": True, "avx512_bf16": False, "amx_bf16": False}


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [(AVX2, False), ({**AVX2, "avx512_bf16": True}, True), ({"bf16": True}, True), ({}, None)],
)
def test_processors(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert has_bfloat16(CPU) is expected


def test_versions_of_torch_that_say_nothing(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert has_bfloat16(CPU) is None


@pytest.mark.parametrize("supported", [True, False])
def test_gpus(monkeypatch, supported):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert has_bfloat16(torch.device("cuda")) is supported
