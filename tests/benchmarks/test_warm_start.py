"""The distances of the start state benchmark equal those of loops over the oracle."""

import json
import sys

import numpy as np
import pytest

from benchmarks import warm_start as benchmark
from spacy_elmo.bilm.start_state import mean_start_state
from spacy_elmo.bilm.weights import Weights
from tests import tiny
from tests.oracle import Oracle

TEXTS = [
    ["a cat", "sat on it .", "a", "cat sat", "on a naïve cat", "it sat ."],
    ["so it", "a cat sat on it", "", "a", "it .", "sat a cat ."],
]
CONFIG = tiny.config(cell_clip=None, proj_clip=None)


def by_loops(start, position=None):
    """Return the root mean square distance from the carried layers, relative to them, by loops over words."""
    oracle = Oracle(CONFIG, tiny.bilm(CONFIG).state_dict())
    distance = reference = 0.0
    for text in TEXTS:
        carried = oracle.zero_state()
        for number, sentence in enumerate(text):
            words = sentence.split()
            expected, after = oracle.layers(words, carried, closing=True)
            got, _ = oracle.layers(words, start)
            carried = after
            for place in range(len(words)) if number >= 3 else ():
                for direction, read in ((0, place + 1), (1, len(words) - place)):
                    half = slice(direction * 5, direction * 5 + 5)
                    if position in (None, read):
                        distance += ((got - expected)[1:, place, half] ** 2).sum()
                        reference += (expected[1:, place, half] ** 2).sum()
    return np.sqrt(distance / reference)


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS), "utf8")
    return tmp_path / "texts.json"


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["warm_start.py", *map(str, arguments)])
    benchmark.main()


def test_distances_equal_the_oracle(tmp_path, texts, monkeypatch, capsys):
    bilm = tiny.bilm(CONFIG)
    start = mean_start_state(bilm, [sentence.split() for text in TEXTS for sentence in text])
    Weights.from_bilm(bilm, start_state=start).save(tmp_path / "w.safetensors")
    run(monkeypatch, tmp_path / "w.safetensors", texts, "--out", tmp_path / "out.json")
    result = json.loads((tmp_path / "out.json").read_text("utf8"))
    assert (result["sentences"], result["words"]) == (6, 16)
    printed = capsys.readouterr().out
    states = {"zero": None, "warm": (start.h.numpy(), start.c.numpy())}
    for name, state in states.items():
        actual = result["distance"][name]
        assert list(actual) == ["1", "2", "3", "all words"]
        for position, value in actual.items():
            number = None if position == "all words" else int(position)
            assert value == pytest.approx(by_loops(state, number), rel=1e-4)
            assert f"{value:10.4f}" in printed


def test_text_with_a_sentence_a_line(tmp_path):
    (tmp_path / "text").write_text("a cat\n\n \nsat", "utf8")
    assert benchmark.read_texts(tmp_path / "text") == [[["a", "cat"], ["sat"]]]


def test_errors(tmp_path, texts, monkeypatch, capsys):
    bilm = tiny.bilm(CONFIG)
    path = tmp_path / "w.safetensors"
    Weights.from_bilm(bilm).save(path)
    with pytest.raises(SystemExit):
        run(monkeypatch, path, texts)
    assert "with --warm" in capsys.readouterr().err
    Weights.from_bilm(bilm, start_state=mean_start_state(bilm, [["a"]] * 4)).save(path)
    texts.write_text(json.dumps([TEXTS[0][:3]]), "utf8")
    with pytest.raises(SystemExit):
        run(monkeypatch, path, texts)
    assert "no text with more than 3 sentences" in capsys.readouterr().err
