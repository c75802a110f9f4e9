"""The learning curve: what each point trains, and the figures that are read from what it leaves."""

import json
import sys

import pytest
import srsly

from scripts import learning_curve
from scripts.learning_curve import BASELINE_CONFIG, NER_CONFIG, chart, commands, read_points, table
from spacy_elmo.analysis.figures import save_figure
from spacy_elmo.bilm.weights import Weights
from tests import consumers, tiny


@pytest.fixture
def out(tmp_path):
    for words, perplexity, scores in (("10", 210, [0.5, 0.6]), ("1", 900, [0.25])):
        folder = tmp_path / "curve" / words
        folder.mkdir(parents=True)
        card = {"perplexity": {"mean": perplexity}}
        Weights.from_bilm(tiny.bilm(tiny.config()), card=card).save(
            folder / "model-best.safetensors"
        )
        for seed, score in enumerate(scores):
            (folder / f"ner-{seed}").mkdir()
            (folder / f"ner-{seed}" / "test.json").write_text(json.dumps({"ents_f": score}))
    (tmp_path / "curve" / "0" / "ner-0").mkdir(parents=True)
    (tmp_path / "curve" / "0" / "ner-0" / "test.json").write_text(json.dumps({"ents_f": 0.2}))
    # Still under way.
    (tmp_path / "curve" / "30").mkdir()
    return tmp_path / "curve"


def test_points_are_read_fewest_words_first(out, tmp_path):
    points = read_points(out)
    assert points == [
        {"words": 0.0, "perplexity": None, "f1": 20.0, "scores": [20.0]},
        {"words": 1.0, "perplexity": 900, "f1": 25.0, "scores": [25.0]},
        {
            "words": 10.0,
            "perplexity": 210,
            "f1": pytest.approx(55),
            "scores": pytest.approx([50, 60]),
        },
    ]
    assert table(points).splitlines()[2:] == [
        "| 0 |  | 20.0 (1) |",
        "| 1 | 900.0 | 25.0 (1) |",
        "| 10 | 210.0 | 55.0 ± 7.1 (2) |",
    ]
    save_figure(chart(points), tmp_path / "curve.png", title="")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_a_point_reads_its_words_and_its_names_read_its_weights(tmp_path):
    srsly.write_json(tmp_path / "corpus.json", {"prepare": {"lang": "la"}})
    made = commands(tmp_path / "la.cfg", tmp_path, tmp_path / "out", "ner/la", 0.3, 2)
    bilm, train, score = (" ".join(line) for together in made.values() for line in together)
    assert "--training.max_tokens 300000 " in bilm and "--prepare.lang la" in bilm
    assert f"--components.elmo.weights {tmp_path}/out/0.3/model-best.safetensors" in train
    assert "--nlp.lang la" in train and "--system.seed 2" in train
    assert "ner/la-test.spacy" in score
    # Every override is a setting of the config.
    config = consumers.filled(NER_CONFIG.stem)
    options = [
        word[2:].split(".") for word in train.split() if word.startswith("--") and "." in word
    ]
    for section, *names in options:
        block = config[section]
        for name in names:
            assert name in block
            block = block[name]


def test_the_point_without_words_trains_the_baseline_alone(tmp_path):
    srsly.write_json(tmp_path / "corpus.json", {"prepare": {"lang": "la"}})
    ((train, score),) = commands(tmp_path, tmp_path, tmp_path / "out", "ner/la", 0, 1).values()
    assert str(BASELINE_CONFIG) in train and not any("elmo.weights" in word for word in train)
    assert "--system.seed" in train and "evaluate" in score


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    srsly.write_json(tmp_path / "corpus.json", {"prepare": {"lang": "la"}})
    made = commands(tmp_path / "la.cfg", tmp_path, tmp_path / "out", "ner/la", 3, 0)
    first, *others = made
    first.parent.mkdir(parents=True)
    first.touch()
    called = []
    monkeypatch.setattr(learning_curve.subprocess, "run", lambda line, check: called.append(line))
    arguments = [str(tmp_path / "la.cfg"), str(tmp_path), str(tmp_path / "out"), "--ner", "ner/la"]
    monkeypatch.setattr(sys, "argv", ["learning_curve", "run", *arguments, "--millions", "3"])
    learning_curve.main()
    assert called == [line for file in others for line in made[file]]
    assert [line[3] for line in called] == ["train", "evaluate"]


def test_a_report_on_nothing_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["learning_curve", "report", str(tmp_path), "a.png"])
    with pytest.raises(SystemExit, match="no point is done"):
        learning_curve.main()
