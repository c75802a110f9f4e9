"""The programs in scripts/ that a maintainer runs."""

import configparser
import json
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import srsly
import torch
from confection import Config

from scripts import check_release, perplexity_by_domain, release_weights, sense_quiz
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Prepare, PretrainConfig
from spacy_elmo.pretraining.perplexity import evaluate
from spacy_elmo.pretraining.prepare import prepare
from tests import tiny

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "corpus" / "sample"
VOCABULARY = ["<S>", "</S>", "<UNK>", "cat", "the", "."]


def test_the_sample_is_what_its_generator_writes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from make_sample import make_sample

    make_sample(tmp_path)
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*.*")}
    # The senses are written by hand.
    paths = [p for p in SAMPLE.rglob("*.*") if p.parent.name != "senses" and p.suffix != ".md"]
    assert written == {p.relative_to(SAMPLE): p.read_bytes() for p in paths}


@pytest.mark.slow
def test_demo(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import demo

    monkeypatch.setattr(demo, "STEPS", 2)
    demo.main()
    output = capsys.readouterr().out
    assert "muddy BANK" in output and "hash embedding + ELMo" in output


def test_before_a_release_only_the_date_is_missing():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    source = re.search(r"^Source = (\S+)$", config["metadata"]["project_urls"], re.MULTILINE)[1]
    version = runpy.run_path(str(ROOT / "spacy_elmo/about.py"))["__version__"]
    found = check_release.problems(f"v{version}", source)
    assert all(problem.startswith("CHANGELOG.md") for problem in found)
    wrong = "\n".join(check_release.problems("v9", "https://example.org"))
    assert "The tag is v9" in wrong and "Source in setup.cfg" in wrong


@pytest.fixture
def weights():
    torch.manual_seed(0)
    head = Head(len(VOCABULARY), 5)
    card = {"language": "en"}
    return Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY, card=card)


def test_perplexity_by_domain(weights, tmp_path):
    text, table = tmp_path / "text.txt", tmp_path / "table.tsv"
    text.write_text("the cat .\nthe dog .\n\na cat .\n\nthe .\n")
    table.write_text('number\tsource\n0\tnews\n1\tblog "x\n2\tnews\n')
    settings = Prepare(tokenized=True)
    found = perplexity_by_domain.by_source(weights, text, table, settings)
    assert {name: p.targets for name, p in found.items()} == {"news": 11, 'blog "x': 4, "all": 15}
    whole = evaluate(weights, [text], settings)
    assert found["all"].mean == pytest.approx(whole.perplexity(6).mean, rel=1e-6)


def test_released_weights_have_the_score_that_their_card_names(weights, tmp_path, monkeypatch):
    text, run, card = tmp_path / "text.txt", tmp_path / "run", tmp_path / "card.json"
    text.write_text("the cat .\nthe dog .\n\na cat .\n")
    dev = shutil.copy(text, tmp_path / "dev.txt")
    run.mkdir()
    settings = {
        "paths": {"raw_text": str(text), "dev_text": str(dev)},
        "prepare": {"tokenized": True},
        "training": {"max_steps": 1},
    }
    Config(settings).to_disk(run / "config.cfg")
    config = PretrainConfig.read(settings)
    prepare(config.paths, config.prepare, run / "corpus")
    weights.save(run / "model-best.safetensors")
    # What is measured is not taken from the file of further fields.
    card.write_text(json.dumps({"licence": "CC0 1.0", "name": "other", "perplexity": 1}))
    monkeypatch.setattr(release_weights, "FOLDER", tmp_path / "weights")
    out, scores = release_weights.release(run, "en_tiny_v1", card)
    released = Weights.load(out)
    assert (released.card["name"], released.card["licence"]) == ("en_tiny_v1", "CC0 1.0")
    tally = evaluate(released, [text], Prepare(tokenized=True))
    expected = tally.perplexity(len(VOCABULARY))
    assert released.card["perplexity"]["mean"] == scores.mean == pytest.approx(expected.mean)
    for name, tensor in weights.tensors.items():
        # bfloat16 has the same 8 significant bits as the numbers of a head; ties go away from zero here.
        precise = 2**-7 if name.startswith("head.") else 2**-10
        torch.testing.assert_close(released.tensors[name].float(), tensor, rtol=precise, atol=1e-6)
    with pytest.raises(FileExistsError, match="a bundled name must not change its meaning"):
        release_weights.release(run, "en_tiny_v1", card)


@pytest.mark.slow
def test_sense_quiz(monkeypatch, capsys):
    """The accuracies on the card of en_mini_v4."""
    monkeypatch.setattr(sys, "argv", ["sense_quiz", "en_mini_v4"])
    sense_quiz.main()
    shelf = srsly.read_jsonl(ROOT / "evidence" / "scores" / "probes.jsonl")
    kept = [run for run in shelf if (run["probe"], run["model"]) == ("sense quiz", "en_mini_v4")]
    for line, run in zip(capsys.readouterr().out.splitlines(), kept, strict=True):
        assert json.loads(line)["scores"] == pytest.approx(run["scores"], abs=1e-3)
