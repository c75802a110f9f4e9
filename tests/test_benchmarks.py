"""Each benchmark runs on little text, and prints or writes its numbers."""

import json
import re
import stat

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from benchmarks import bench, frozen_epochs, kneser_ney, memory, precision

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


def test_figures_of_kenlm(monkeypatch, tmp_path):
    """The output of KenLM is parsed, and words that it does not know are an error."""
    for name, script in (
        ("lmplz", 'test "$3 $4" = "-S 64M" -o "$4" = 1G && cp $8 ${10}'),
        ("query", 'cat "$3" > seen; cat >> seen; cat $(dirname $0)/says'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.chdir(tmp_path)
    train, test = tmp_path / "train.txt", tmp_path / "heldout.txt"
    train.write_text("3 2\n")
    test.write_text("4\n")
    for unknown in (0, 3):
        lines = ("Perplexity including OOVs:\t42.25", f"OOVs:\t{unknown}", "Tokens:\t9")
        (tmp_path / "says").write_text("\n".join(lines))
        if unknown:
            with pytest.raises(ValueError, match="3 words"):
                kneser_ney.kneser_ney(train, test, tmp_path, "64M")
        else:
            assert kneser_ney.kneser_ney(train, test, tmp_path, "64M") == (9, 42.25)
    assert (tmp_path / "seen").read_text() == "3 2\n4\n"
