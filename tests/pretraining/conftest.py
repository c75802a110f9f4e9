"""A toy corpus with a grammar, and settings small enough for tests."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus import Batcher, Sentences
from spacy_elmo.pretraining.prepare import prepare
from tests import tiny

MODEL = {
    "dim": 8, "projection": 4, "char_dim": 4, "filters": [[1, 4], [3, 4]], "highways": 1, "max_characters": 12,
}  # fmt: skip


TYPES = ["<S>", "</S>", "<UNK>", "a", "cat", "sat", "rare"]
VOCAB = 6  # "rare" is <UNK> as a target, and itself as input


def raw_text(sentences: int = 400, per_document: int = 10, seed: int = 0) -> str:
    """Return tokenized nonsense with a grammar: the next word depends on the word before."""
    draw = random.Random(seed)
    nouns = ["cat", "dog", "bird", "tree", "house", "river"]
    verbs = {
        "cat": "sleeps",
        "dog": "barks",
        "bird": "sings",
        "tree": "grows",
        "house": "stands",
        "river": "runs",
    }
    lines = []
    for number in range(sentences):
        noun = draw.choice(nouns)
        lines.append(
            f"the {noun} {verbs[noun]} " + draw.choice([".", "and sleeps .", "in the rain ."])
        )
        if number % per_document == per_document - 1:
            lines.append("")
    return "\n".join(lines)


def sentences_of_sizes(sizes: list[int]) -> Sentences:
    """Return sentences of these numbers of words. Each word is of another type."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Sentences(np.arange(offsets[-1], dtype=np.int32), offsets)


def log_of(out: Path) -> list[dict]:
    """Return the rows of the log of a run."""
    return [json.loads(line) for line in (out / "log.jsonl").read_text("utf8").splitlines()]


def assert_same_weights(left: Path, right: Path) -> None:
    """Check that two runs have the same final weights, and the same best weights, with the same cards."""
    for name in ("model-last.safetensors", "model-best.safetensors"):
        mine, theirs = Weights.load(left / name), Weights.load(right / name)
        assert mine.card == theirs.card and mine.vocabulary == theirs.vocabulary
        assert mine.tensors.keys() == theirs.tensors.keys()
        assert all(torch.equal(mine.tensors[key], theirs.tensors[key]) for key in theirs.tensors)


def assert_same_run(left: Path, right: Path) -> None:
    """Check that two runs have the same weights, and the same log except for the time that they took and the step at
    which they were to end."""
    assert_same_weights(left, right)
    clock = {"minutes", "tokens_per_second", "total_steps"}
    mine, theirs = (
        [{key: row[key] for key in row.keys() - clock} for row in log_of(out)]
        for out in (left, right)
    )
    assert mine == theirs


@pytest.fixture
def bilm():
    return tiny.bilm(tiny.config())


@pytest.fixture
def batcher(bilm):
    return Batcher(bilm, TYPES, TYPES[:VOCAB])


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "raw.txt"
    path.write_text(raw_text(), encoding="utf8")
    return path


@pytest.fixture
def corpus(text_file, tmp_path):
    return prepare(Paths(raw_text=str(text_file)), Prepare(tokenized=True), tmp_path / "corpus")


@pytest.fixture
def make_config():
    def make(**training) -> PretrainConfig:
        settings = {
            "max_steps": 20, "vocab_size": 20, "negatives": 8, "batch_tokens": 64, "log_every": 5, "eval_every": 10,
            "save_every": 5, "warmup_steps": 2, **training,
        }  # fmt: skip
        return PretrainConfig.read(
            {"model": MODEL, "training": settings, "prepare": {"tokenized": True}}
        )

    return make


@pytest.fixture
def make_run_config(make_config, text_file):
    """Return a config that names its text, as a run requires."""

    def make(**training):
        config = make_config(**training)
        paths = config.paths.model_copy(update={"raw_text": str(text_file)})
        return config.model_copy(update={"paths": paths})

    return make
