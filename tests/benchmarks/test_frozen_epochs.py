"""In the benchmark of frozen training both pipelines see the same Docs, and only epoch 1 computes layers."""

import json
import sys

from benchmarks import frozen_epochs
from spacy_elmo.pipeline.component import Elmo


def test_both_pipelines_see_the_same_and_only_epoch_1_computes(tmp_path, monkeypatch, capsys):
    computed = []
    original = Elmo.initialize

    def initialize(self, get_examples, *, nlp=None):
        original(self, get_examples, nlp=nlp)
        forward = self.model._func
        self.model._func = lambda model, docs, is_train: (
            computed.append(len(docs)) or forward(model, docs, is_train)
        )

    monkeypatch.setattr(Elmo, "initialize", initialize)
    out = tmp_path / "out.json"
    options = ["--epochs", "3", "--limit", "12", "--batch-words", "30", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["frozen_epochs.py", *options, "--out", str(out)])
    frozen_epochs.main()
    result = json.loads(out.read_text("utf8"))
    assert result["docs"] == sum(computed) == 12
    assert {name: len(epochs) for name, epochs in result["seconds"].items()} == {
        "without": 3,
        "with": 3,
    }
    later = [sum(result["seconds"][name][1:]) for name in ("with", "without")]
    assert result["ratio"]["epochs 2.."] == later[0] / later[1]
    assert f"{result['ratio']['epochs 2..']:8.2f}" in capsys.readouterr().out
