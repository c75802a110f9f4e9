"""Each benchmark runs on little text, and prints or writes its numbers."""

import json
import re
import stat

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from benchmarks import bench, frozen_epochs, kneser_ney, memory, precision, search

pytestmark = pytest.mark.slow


@pytest.fixture
def run(monkeypatch, capsys):
    def program(module, *arguments):
        monkeypatch.setattr("sys.argv", [module.__name__, *map(str, arguments)])
        module.main()
        return capsys.readouterr().out

    return program


def test_bench(run, monkeypatch, tmp_path):
    """The speeds of the mini biLM, of onnxruntime and of the plain network, which has the same layers and loss."""
    monkeypatch.setattr(bench, "LEAST", {"mini": 4})
    monkeypatch.setattr(bench, "WARM_UP", {True: 4, False: 4})
    out = tmp_path / "bench.json"
    run(bench, "--sizes", "mini", "--batches", 1, 2, "--words", 100, "--out", out)
    report = json.loads(out.read_text())
    speeds = report["inference"]["mini"]
    assert {"network, float32", "nlp.pipe, float32", "onnxruntime"} <= speeds.keys()
    assert all(speed > 0 for by_batch in speeds.values() for speed in by_batch.values())
    assert {"plain PyTorch", "float32"} <= report["training"]["mini"]["training"].keys()


def test_precision(run):
    least = re.search(r"layer 0 +(\S+)", run(precision, "--words", 200))
    assert 0.999 < float(least[1]) <= 1


def test_frozen_epochs(run, tmp_path):
    docs = [Doc(Vocab(), words=["Anna", "ran"], ents=["B-PER", "O"])] * 3
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    assert "from epoch 2 on" in run(
        frozen_epochs, "--train", tmp_path / "train.spacy", "--epochs", 2
    )


def test_memory(run):
    assert "stored average: 1 MB" in run(memory, "--words", 2000)


def test_search(run, tmp_path):
    """Each query has its premise among the ten nearest of four, if a pair counts at all."""
    texts = ["A cat sat.", "The cat is sitting.", "Money is lent.", "Rain fell."]
    labels = {(0, 1): "entailment", (2, 3): "neutral", (3, 3): "entailment"}
    rows = [
        {"premise": texts[i], "hypothesis": texts[j], "label": label}
        for (i, j), label in labels.items()
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, *shown = run(search, tmp_path / "pairs.jsonl", "--weights", "en_mini_v4").splitlines()
    assert first == "4 sentences, 1 queries; recall at 10 in %"
    assert len(shown) == 2 + 2 * 4 and all(line.endswith(" 100.0") for line in shown)


def test_figures_of_kenlm(tmp_path):
    """The output of KenLM is parsed."""
    said = "Perplexity including OOVs:\\t42.25\\nOOVs:\\t0\\nTokens:\\t9"
    for name, script in (("lmplz", "cp $8 ${10}"), ("query", f"printf '{said}'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    text = tmp_path / "text.txt"
    text.write_text("3 2\n")
    assert kneser_ney.kneser_ney(text, text, tmp_path, "64M") == (9, 42.25)
