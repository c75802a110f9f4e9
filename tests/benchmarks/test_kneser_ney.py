"""Both models of the Kneser-Ney comparison use the same text, and the output of KenLM is parsed."""

import stat

import numpy as np
import pytest

from benchmarks import kneser_ney as module
from benchmarks.kneser_ney import kneser_ney, numbered_lines
from spacy_elmo.pretraining.corpus.prepared import Sentences

SENTENCES = Sentences(np.array([3, 5, 4, 3, 6, 3]), np.array([0, 2, 3, 6]))
CLASSES = np.array([0, 1, 2, 3, 4, 2, 2])  # types 5 and 6 are <UNK>


@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_lines(monkeypatch, chunk):
    monkeypatch.setattr(module, "_SENTENCES_PER_CHUNK", chunk)
    lines = ["3 2\n", "4\n", "3 2 3\n"]
    assert list(numbered_lines(SENTENCES, CLASSES)) == lines


@pytest.fixture
def tools(tmp_path):
    """Return stand-ins for KenLM's programs. The second prints the content of a file."""
    for name, script in (
        ("lmplz", 'test "$3 $4" = "-S 64M" -o "$4" = 1G && cp $8 ${10}'),
        ("query", 'cat "$3" > seen; cat >> seen; cat $(dirname $0)/says'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    return tmp_path


def says(folder, oovs):
    lines = ("Perplexity including OOVs:\t42.25", f"OOVs:\t{oovs}", "Tokens:\t9", "Name:\tquery")
    (folder / "says").write_text("\n".join(lines))
    (folder / "train.txt").write_text("3 2\n")
    (folder / "heldout.txt").write_text("4\n")
    return folder / "train.txt", folder / "heldout.txt"


def test_figures_of_the_tool(tools, monkeypatch):
    monkeypatch.chdir(tools)
    assert kneser_ney(*says(tools, oovs=0), tools, "64M") == (9, 42.25)
    assert (tools / "seen").read_text() == "3 2\n4\n"


def test_words_that_the_tool_does_not_know(tools, monkeypatch):
    monkeypatch.chdir(tools)
    with pytest.raises(ValueError, match="3 words that are not in .*train.txt"):
        kneser_ney(*says(tools, oovs=3), tools)
