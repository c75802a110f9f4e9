"""`python -m spacy elmo info`."""

import hashlib
import json
import re

import pytest
import torch
from typer.testing import CliRunner

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.kernels.native import active_kernels
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from spacy_elmo.weight_names import find_weights
from tests import tiny
from tests.commands import elmo

CARD = {
    "language": "fi",
    "converted_from": "lm.hdf5",
    "perplexity": {"mean": 109.17775},
    "naïve": ["ä", 1],
}


def invoke(*arguments):
    return elmo("info", *arguments)


def write(path, head=True, card=CARD, **fields):
    bilm = tiny.bilm(tiny.config(**fields))
    vocabulary = tiny.VOCABULARY if head or fields.get("n_words") else []
    made = Head(len(vocabulary), bilm.config.projection) if head else None
    Weights.from_bilm(bilm, made, vocabulary=vocabulary, card=card, dtype=torch.float16).save(path)
    return bilm


def test_json(tmp_path):
    path = tmp_path / "w.safetensors"
    bilm = write(path)
    code, output = invoke(path, "--json")
    assert code == 0
    info = json.loads(output)
    assert info["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert info["bytes"] == path.stat().st_size
    assert (info["file"], info["dtype"]) == (str(path), ["float16"])
    assert (info["layers"], info["width"]) == (3, 10)
    assert info["parameters"] == sum(p.numel() for p in bilm.parameters())
    head = info["tensors"].pop("head")
    assert head == 8 * (5 + 1)
    assert sum(info["tensors"].values()) == info["parameters"]
    assert info["tensors"]["lstm.1"] == sum(p.numel() for p in bilm.lstm[1].parameters())
    assert (info["head"], info["vocabulary"]) == (True, 8)
    assert info["config"] == json.loads(json.dumps(bilm.config.to_dict()))
    assert info["card"] == CARD


def test_for_the_eye(tmp_path):
    path = tmp_path / "w.safetensors"
    write(path)
    code, output = invoke(path, "--all")
    assert code == 0
    for text in (
        "vectors 10 numbers per token in each of the layers 0 to 2",
        "head softmax over 8 words",
        "origin converted from lm.hdf5",
        "language fi",
        "licence not stated",
        "perplexity.mean 109.178",
        'naïve ["ä", 1]',
        "max_characters 12",
    ):
        assert text in output
    assert output.count("language") == 1


def test_without_all_it_fits_a_screen():
    result = CliRunner().invoke(elmo_cli, ["info", "en_mini_v4"])
    lines = result.output.splitlines()
    assert len(lines) <= 24
    assert max(len(line.rstrip()) for line in lines if "file " not in line) <= 90
    output = " ".join(result.output.split())
    assert "size 19.3 MB, 3,002,064 parameters" in output and "perplexity 84.98" in output
    assert "max_characters" not in output and "Use --all" in output
    assert f"kernels {active_kernels()}" in output


def test_without_an_argument_it_shows_the_installation():
    code, output = invoke()
    assert code == 0
    for text in (
        f"kernels {active_kernels()}",
        f"PyTorch {torch.__version__}",
        "default for English en_base_v2",
    ):
        assert text in output
    weights = json.loads(invoke("--json")[1])["weights"]
    assert weights["en_mini_v4"] == {"language": "en", "file": str(find_weights("en_mini_v4"))}


def test_card_that_somebody_has_edited(tmp_path):
    write(tmp_path / "w.safetensors", card={"steps": "many"})
    code, output = invoke(tmp_path / "w.safetensors", "--all")
    assert code == 0
    assert "origin not stated" in output and "steps many" in output


def test_terminal_escapes_of_a_card_are_shown_and_not_obeyed(tmp_path):
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egnp"
    card = {
        "language": hostile,
        hostile: 1,
        "licence": f"MIT\r{hostile}",
        "nested": {"a": [hostile]},
    }
    write(tmp_path / "w.safetensors", card=card)
    code, output = invoke(tmp_path / "w.safetensors", "--all")
    assert code == 0
    # Titles are bold.
    assert not set(re.sub(r"\x1b\[[01]m", "", output)) & {"\x1b", "\x07", "\r", "\u202e"}
    assert r"\x1b]0;owned\x07\x1b[2J\u202egnp" in output


def test_word_input_without_a_head_or_a_card(tmp_path):
    write(tmp_path / "w.safetensors", head=False, card={}, n_words=8)
    code, output = invoke(tmp_path / "w.safetensors", "--all")
    assert code == 0
    assert "head no" in output and "origin not stated" in output
    assert "Card" not in output
    info = json.loads(invoke(tmp_path / "w.safetensors", "--json")[1])
    assert (info["head"], info["vocabulary"]) == (False, 8)


def test_bundled_name():
    code, output = invoke("en_mini_v4")
    assert code == 0
    assert "256 numbers per token in each of the layers 0 to 2" in output
    assert "pretrained by spacy-elmo, 5,336 steps" in output
    assert hashlib.sha256(find_weights("en_mini_v4").read_bytes()).hexdigest() in output


@pytest.mark.parametrize(
    "name, problem",
    [
        ("nowhere", "Cannot find the weights"),
        ("folder", "convert auto folder ours.safetensors"),
        ("a", "not a readable"),
    ],
)
def test_errors(tmp_path, monkeypatch, name, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_text("nonsense")
    code, output = invoke(name)
    assert code == 1
    assert problem in output
