"""Release of a run: rounded weights, and a card with their score."""

import json
import shutil

import pytest
import torch
from confection import Config

from scripts import release_weights
from scripts.release_weights import release, shorten
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.perplexity import evaluate
from tests import tiny

VOCABULARY = ["<S>", "</S>", "<UNK>", "cat", "the", "."]


def test_shortened_numbers_are_the_nearest_of_eight_bits():
    values = torch.randn(10_000, generator=torch.Generator().manual_seed(0)).half()
    short = shorten(values)
    # bfloat16 has the same 8 significant bits, and these values are normal numbers in both types. Ties go to the even
    # number there and away from zero here.
    bfloat16 = values.bfloat16().half()
    tied = (values.float() - bfloat16.float()).abs() == (values.float() - short.float()).abs()
    normal = values.abs() >= 2.0**-14
    assert bool((tied | ~normal).all())
    assert bool(((short == bfloat16) | tied).all())
    assert set((short.view(torch.int16) & 7).tolist()) == {0}
    assert shorten(torch.tensor([1.0, -1.0, 0.0, 1.0078125]).half()).tolist() == [
        1.0,
        -1.0,
        0.0,
        1.0078125,
    ]


def test_the_file_has_the_score_that_its_card_names(tmp_path, monkeypatch):
    text, run, card = tmp_path / "text.txt", tmp_path / "run", tmp_path / "card.json"
    text.write_text("the cat .\nthe dog .\n\na cat .\n")
    dev = shutil.copy(text, tmp_path / "dev.txt")
    run.mkdir()
    paths = {"raw_text": str(text), "dev_text": str(dev)}
    settings = {"paths": paths, "prepare": {"tokenized": True}, "training": {"max_steps": 1}}
    Config(settings).to_disk(run / "config.cfg")
    config = PretrainConfig.of(settings)
    prepare(config.paths, config.prepare, run / "corpus")
    torch.manual_seed(0)
    bilm, head = tiny.bilm(tiny.config()), Head(len(VOCABULARY), 5)
    best = Weights.from_bilm(bilm, head, vocabulary=VOCABULARY, card={"language": "en"})
    best.save(run / "model-best.safetensors")
    # What is measured is not taken from the file of further fields.
    card.write_text(json.dumps({"licence": "CC0 1.0", "name": "other", "perplexity": 1}))
    monkeypatch.setattr(release_weights, "FOLDER", tmp_path / "weights")

    out, scores = release(run, "en_tiny_v1", card)

    released = Weights.load(out)
    assert out == tmp_path / "weights" / "en_tiny_v1.safetensors"
    assert {key: released.card[key] for key in ("language", "licence", "name")} == {
        "language": "en", "licence": "CC0 1.0", "name": "en_tiny_v1",
    }  # fmt: skip
    ((_, tally),) = evaluate(released, [text], Prepare(tokenized=True))
    expected = tally.perplexity(len(VOCABULARY))
    assert released.card["perplexity"]["mean"] == scores.mean == pytest.approx(expected.mean)
    assert scores.targets == 12
    for name, tensor in best.tensors.items():
        rounded = shorten(tensor.half()) if name.startswith("head.") else tensor.half()
        assert torch.equal(released.tensors[name], rounded)
    with pytest.raises(FileExistsError, match="a bundled name must not change its meaning"):
        release(run, "en_tiny_v1", card)
