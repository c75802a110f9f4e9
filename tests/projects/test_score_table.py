"""The table of seeds, by numbers a person can check."""

import json

import pytest

from projects.compare.score_table import read_scores, table


def write(folder, name, **metrics):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metrics))


def test_mean_deviation_and_share_of_errors(tmp_path):
    write(tmp_path, "gum-named/ner_elmo-0.json", ents_f=0.30)
    write(tmp_path, "gum-named/ner_elmo-10.json", ents_f=0.50)
    write(tmp_path, "gum-named/ner_elmo-2.json", ents_f=0.40)
    write(tmp_path, "gum-named/ner_baseline-0.json", ents_f=0.20)
    assert table(read_scores(tmp_path)).splitlines()[2:] == [
        "| gum-named | ner_baseline | F1 | 0 | 20.0 | - | 20.0 | - |",
        "| gum-named | ner_elmo | F1 | 0, 2, 10 | 40.0 | 10.0 | 30.0, 40.0, 50.0 | 25.0% |",
    ]


def test_every_task_has_its_metric_and_its_own_baseline(tmp_path):
    write(tmp_path, "ewt/tagger_elmo-1.json", tag_acc=0.95, ents_f=0.1)
    write(tmp_path, "ewt/tagger_baseline-1.json", tag_acc=0.90)
    write(tmp_path, "trec/textcat_elmo-1.json", cats_micro_f=0.5, cats_score=0.9)
    write(tmp_path, "sst5/textcat_baseline-1.json", cats_micro_f=0.4)
    assert table(read_scores(tmp_path)).splitlines()[2:] == [
        "| ewt | tagger_baseline | accuracy | 1 | 90.0 | - | 90.0 | - |",
        "| ewt | tagger_elmo | accuracy | 1 | 95.0 | - | 95.0 | 50.0% |",
        "| sst5 | textcat_baseline | accuracy | 1 | 40.0 | - | 40.0 | - |",
        "| trec | textcat_elmo | accuracy | 1 | 50.0 | - | 50.0 | - |",
    ]


def test_a_worse_config_has_more_errors(tmp_path):
    write(tmp_path, "a/ner-0.json", ents_f=0.5)
    write(tmp_path, "a/ner_baseline-0.json", ents_f=0.5)
    write(tmp_path, "a/ner_before_tuning-0.json", ents_f=0.4)
    rows = table(read_scores(tmp_path)).splitlines()[2:]
    assert [row.split("|")[-2].strip() for row in rows] == ["0.0%", "-", "-20.0%"]


@pytest.mark.parametrize(
    "name, metrics, message",
    [
        ("a/ner_b-1.json", {}, "no ents_f"),
        ("a/ner_b-1.json", {"ents_f": None}, "no ents_f"),
        ("a/tagger_b-1.json", {"ents_f": 1.0}, "no tag_acc"),
        ("a/b.json", {"ents_f": 1.0}, "ner_elmo-0.json"),
        ("a/lemmatizer_elmo-0.json", {"ents_f": 1.0}, "one of ner, tagger, textcat"),
        ("a/parser_elmo-0.json", {"ents_f": 1.0}, "no dep_las"),
        ("a/ner_b-1.txt", {}, "run the evaluation first"),
    ],
)
def test_unusable_files_are_errors(tmp_path, name, metrics, message):
    write(tmp_path, name, **metrics)
    with pytest.raises(ValueError, match=message):
        read_scores(tmp_path)
