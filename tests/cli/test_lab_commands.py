"""The commands that analyse a biLM: for each command line, the exit code and a fragment of the output."""

import json
import shlex

import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny
from tests.commands import elmo

RIVER, MONEY, SKY = "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::"
VOCABULARY = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>"]
TAGS = {"a": "DET", "cat": "NOUN", "sat": "VERB", ".": "PUNCT"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    torch.manual_seed(0)
    card = {"language": "en", "tokenizer": "spacy.blank('en')"}
    head = Head(len(VOCABULARY), 5)
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY, card=card)
    weights.save(folder / "lm.safetensors")
    weights.without_head().save(folder / "bare.safetensors")
    senses = {
        "train-1": [
            (["the", "river", "bank"], [None, None, RIVER]),
            (["money", "in", "the", "bank"], [None, None, None, MONEY]),
        ],
        "train-2": [(["my", "bank", "pays"], [None, MONEY, None])],
        # The sentence of RIVER again, so that every layer but the first must find it; and an entry that is new.
        "a": [(["the", "river", "bank"], [None, None, RIVER])],
        "b": [(["the", "sky"], [None, SKY])],
        "plain": [(["a"], [None])],
    }
    for name, sentences in senses.items():
        rows = (json.dumps({"tokens": words, "sense": keys}) for words, keys in sentences)
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    (folder / "index.sense").write_text(f"{SKY} 09436708 1 18\n{MONEY} 08420278 1 20\n")
    rows = "1\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n\n"
    (folder / "t.conllu").write_text("".join(rows.format(*pair) for pair in TAGS.items()))
    (folder / "untagged.conllu").write_text(rows.format("cat", "_"))
    pipelines.blank(folder / "lm.safetensors").to_disk(folder / "nlp")
    return folder


PROBE = "probe word-sense bare.safetensors"
TABLE = [
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Layer 1 100.0 0.0 66.7 Layer 2 100.0 0.0 66.7"),
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Words 1 1 2 that occur in TRAIN 1 0 1 with several senses 1 0 1"),
    (f"{PROBE} train-1.jsonl a.jsonl b.jsonl --first-senses index.sense", 0, "WordNet's first sense 0.0 100.0 50.0"),
    (f"{PROBE} none.jsonl a.jsonl", 1, "No text at 'none.jsonl'"),
    (f"{PROBE} plain.jsonl a.jsonl", 1, "No word of the training text has a sense"),
    (f"{PROBE} train-1.jsonl plain.jsonl", 1, "plain.jsonl: no word has a sense"),
    (f"{PROBE} train-1.jsonl a.jsonl -o nowhere/a.json", 1, "nowhere does not exist"),
    ("probe word-sense nowhere train-1.jsonl a.jsonl", 1, "Cannot find 'nowhere'"),
    ("probe part-of-speech nlp t.conllu t.conllu", 0, "Accuracy in % 4 words, 4 tags"),
    ("probe part-of-speech nlp t.conllu untagged.conllu", 1, "'cat' has no tag"),
]  # fmt: skip


@pytest.mark.parametrize("line, code, fragment", TABLE)
def test_command_line(folder, monkeypatch, line, code, fragment):
    monkeypatch.chdir(folder)
    actual = elmo(*shlex.split(line))
    assert (actual[0], fragment in actual[1]) == (code, True), actual[1]


def written(folder, tmp_path, line):
    """Return the JSON file that a command writes."""
    code, output = elmo(*shlex.split(line), "-o", tmp_path / "out.json")
    assert code == 0, output
    return json.loads((tmp_path / "out.json").read_text("utf8"))


def test_written_probes(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    senses = written(folder, tmp_path, f"{PROBE} train-*.jsonl a.jsonl b.jsonl")
    assert (senses["instances"], senses["layers"][1:]) == (2, pytest.approx([2 / 3, 2 / 3]))
    assert senses["files"]["b.jsonl"]["layers"] == [0, 0, 0]
    tags = written(folder, tmp_path, "probe part-of-speech nlp t.conllu t.conllu")
    assert tags == {"words": 4, "tags": 4, "layers": [1, 1, 1], "most_frequent": 1}
