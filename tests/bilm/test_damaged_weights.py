"""The digest of a weights file detects a change of any bit, and weights that cannot be loaded are not written."""

import json

import pytest
import safetensors.torch
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.start_state import StartState
from spacy_elmo.bilm.weights import Weights
from tests import tiny


def make(dtype=torch.float32):
    torch.manual_seed(0)
    return Weights.from_bilm(
        tiny.bilm(tiny.config(n_words=8)),
        Head(8, 5),
        vocabulary=tiny.VOCABULARY,
        card={"language": "en", "note": "naïve 鳥"},
        start_state=StartState(torch.ones(2, 2, 5), torch.ones(2, 2, 7)),
        dtype=dtype,
    )


CONTENT = make().to_bytes()


def header_of(content):
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"]


@pytest.mark.parametrize(
    "before, after",
    [
        (b'\\"cell_clip\\": 0.3', b'\\"cell_clip\\": 0.9'),
        (b'\\"forget_bias\\": 1.0', b'\\"forget_bias\\": 0.0'),
        (b'\\"skip\\": true', b'\\"skip\\":false'),
        (b'\\"language\\": \\"en', b'\\"language\\": \\"es'),
        (b'"digest"', b'"dIgest"'),
    ],
)
def test_settings_the_card_and_the_digest_itself_count(tmp_path, before, after):
    damaged, path = CONTENT.replace(before, after), tmp_path / "w.safetensors"
    assert damaged != CONTENT
    path.write_bytes(damaged)
    for read in (lambda: Weights.load(path), lambda: Weights.from_bytes(damaged)):
        with pytest.raises(ValueError, match="damaged.*changed since it was written"):
            read()


def test_tensors_cannot_change_places():
    tensors = safetensors.torch.load(CONTENT)
    one, other = "lstm.0.bias", "lstm.1.bias"
    tensors[one], tensors[other] = tensors[other] + 1, tensors[one]
    assert tensors[one].shape == tensors[other].shape
    with pytest.raises(ValueError, match="damaged"):
        Weights.from_bytes(safetensors.torch.save(tensors, header_of(CONTENT)))


def test_the_order_of_the_tensors_in_the_file_is_free():
    weights = make()
    weights.tensors = dict(reversed(weights.tensors.items()))
    assert header_of(weights.to_bytes()) == header_of(CONTENT)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_not_finite_is_not_written(tmp_path, value, dtype):
    path = tmp_path / "w.safetensors"
    weights = make(dtype)
    weights.save(path)
    before = path.read_bytes()
    weights.tensors["lstm.1.recurrent"][1, 4, 27] = value
    with pytest.raises(ValueError, match=r"1 of \d+ tensors .*: lstm.1.recurrent\. "):
        weights.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]
