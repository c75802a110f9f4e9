"""The benchmark of the explore page asks each kind of question as often as the others."""

import sys

import numpy as np
import pytest

from benchmarks import explore
from spacy_elmo.analysis.contexts.write_occurrences import write_occurrences
from spacy_elmo.corpora.pipelines import load_pipeline
from spacy_elmo.search.corpus_index import corpus_source


def test_explore(tmp_path, monkeypatch, capsys):
    text = tmp_path / "a.txt"
    text.write_text("The bank of the river was muddy and wet.\n" * 3)
    nlp, _ = load_pipeline("en_mini_v3")
    about = corpus_source(nlp, "en_mini_v3", lang=None, tokenized=False)
    list(write_occurrences(tmp_path / "index", nlp, str(text), about=about))
    out = tmp_path / "out.json"
    arguments = [str(tmp_path / "index"), "--count", "3", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["explore.py", *arguments])
    explore.main()
    printed = capsys.readouterr().out
    assert "30 words, 3 sentences, en_mini_v3, 1 threads" in printed
    for kind in ("a sentence", "two sentences", "a rare word", "a word of two sentences"):
        assert kind in printed and kind in out.read_text()


def test_quantiles():
    row = explore._row(np.array([[number, 10 * number] for number in range(101)]))
    assert row == {
        "p50": pytest.approx(50),
        "p95": pytest.approx(95),
        "cpu p50": pytest.approx(500),
        "cpu p95": pytest.approx(950),
    }
