"""The table of seeds, by numbers a person can check."""

import json

import pytest

from scripts.ner_table import read_scores, table


def write(folder, name, **metrics):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metrics))


def test_mean_and_deviation(tmp_path):
    write(tmp_path, "gum-named/ner_elmo-0.json", ents_f=0.10)
    write(tmp_path, "gum-named/ner_elmo-10.json", ents_f=0.30)
    write(tmp_path, "gum-named/ner_elmo-2.json", ents_f=0.20)
    write(tmp_path, "gum-named/ner_baseline-0.json", ents_f=0.125)
    assert table(read_scores(tmp_path)).splitlines()[2:] == [
        "| gum-named | ner_baseline | 0 | 12.5 | - | 12.5 |",
        "| gum-named | ner_elmo | 0, 2, 10 | 20.0 | 10.0 | 10.0, 20.0, 30.0 |",
    ]


def test_other_metric(tmp_path):
    write(tmp_path, "ewt/tagger_elmo-1.json", tag_acc=0.5)
    assert "| ewt | tagger_elmo | 1 | 50.0 |" in table(read_scores(tmp_path, "tag_acc"))


@pytest.mark.parametrize(
    "name, metrics, message",
    [
        ("a/b-1.json", {}, "no ents_f"),
        ("a/b-1.json", {"ents_f": None}, "no ents_f"),
        ("a/b.json", {"ents_f": 1.0}, "ner_elmo-0.json"),
        ("a/b.txt", {}, "run the evaluation first"),
    ],
)
def test_unusable_files_are_errors(tmp_path, name, metrics, message):
    write(tmp_path, name, **metrics)
    with pytest.raises(ValueError, match=message):
        read_scores(tmp_path)
