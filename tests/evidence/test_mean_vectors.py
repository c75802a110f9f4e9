"""Texts are classified by the mean of their vectors."""

import sys

import pytest
import spacy
from experiments.mean_vectors import accuracy, main
from spacy.tokens import DocBin

WATER = ["river", "lake", "stream", "pond", "sea", "brook", "canal", "harbour"]
FOOD = ["bread", "soup", "cheese", "cake", "butter", "pie", "bacon", "porridge"]


def text(nlp, word, label):
    doc = nlp.make_doc(f"We looked at the {word} for a long time.")
    doc.cats = {"food": float(label == "food"), "water": float(label == "water")}
    return doc


def test_classes_are_found_and_an_unknown_one_never(tmp_path, monkeypatch, capsys):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    docs = [
        text(nlp, word, label)
        for pair in zip(FOOD, WATER, strict=True)
        for word, label in zip(pair, ("food", "water"), strict=True)
    ]
    odd = nlp.make_doc("We looked at the bread for a long time.")
    odd.cats = {"stone": 1.0}
    parts = {"train": docs[:12], "dev": docs[12:14], "test": [docs[0], docs[1], docs[5], odd]}
    assert accuracy(nlp, *parts.values()) == 0.75
    for part, actual in parts.items():
        DocBin(docs=actual).to_disk(tmp_path / f"a-{part}.spacy")
    monkeypatch.setattr(sys, "argv", ["mean_vectors", str(tmp_path / "a")])
    main()
    assert capsys.readouterr().out == "Accuracy on the test part: 75.0\n"
    (tmp_path / "a-dev.spacy").unlink()
    with pytest.raises(SystemExit, match="no corpus .*a-dev.spacy; `spacy project run runs`"):
        main()
