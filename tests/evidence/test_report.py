"""The report of made-up scores, by numbers a person can check."""

import base64
import json
import re

import pytest
import srsly
from experiments import tables
from experiments.probe_tables import sense_table, tag_table
from experiments.report import Figure, Section, no_gain, sections, write
from experiments.results import METRICS, Result, Results, read_results, updates_needed
from experiments.share_chart import share_chart
from experiments.tables import Table

from spacy_elmo.analysis.figures import save_figure
from tests.evidence.folders import EVIDENCE

PAPER = srsly.read_yaml(EVIDENCE / "paper.yml")
RUN = {"minutes": 2.0, "documents": 400, "dev": [[10, 0.3], [20, 0.5], [30, 0.4]]}


def result(variant, score, *, task="ner", data="wnut17", share=100, seed=0, dev=(), minutes=1.0):
    return Result(task, data, share, variant, seed, score, minutes, 4 * share, tuple(dev))


def cells(table):
    return [list(row) for row in table.rows]


def test_results_are_read_from_what_runs_write(tmp_path):
    for name in ("wnut17/ner_elmo-0", "wnut17-10pct/ner_elmo_l2_0001-2"):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"ents_f": 0.25, "run": RUN}))
    dev = ((10, 30.0), (20, 50.0), (30, 40.0))
    whole = Result("ner", "wnut17", 100, "elmo", 0, 25.0, 2.0, 400, dev)
    part = Result("ner", "wnut17", 10, "elmo_l2_0001", 2, 25.0, 2.0, 400, dev)
    assert sorted(read_results(tmp_path), key=lambda found: found.seed) == [whole, part]


def test_scores_of_other_programs_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "ner_elmo-0.json").write_text('{"ents_f": 1.0}')
    with pytest.raises(ValueError, match='ner_elmo-0.json: no "run" in it'):
        read_results(tmp_path)


def test_every_task_has_a_metric():
    assert set(METRICS) == set(srsly.read_yaml(EVIDENCE / "plan.yml")["converters"])


def test_tasks():
    found = tables.tasks(
        Results(
            [
                *(result("baseline", score, seed=i) for i, score in enumerate((40, 50, 60))),
                *(result("elmo", score, seed=i) for i, score in enumerate((60, 65))),
                result("vectors", 45),
                result("baseline", 80, task="tagger", data="ewt"),
                # Of a part of the data, and of another table.
                result("baseline", 1, share=10),
                result("elmo_top", 1),
            ]
        )
    )
    assert list(found.columns)[2:] == ["baseline", "vectors", "elmo", "fewer errors"]
    assert cells(found) == [
        ["ner, wnut17", "ents_f", "50.0 ± 10.0 (3)", "45.0", "62.5 ± 3.5 (2)", "25.0%"],
        ["tagger, ewt", "tag_acc", "80.0", "-", "-", "-"],
    ]


def test_where_elmo_does_not_help_is_said():
    assert "every task scores higher" in no_gain(
        Results([result("baseline", 1), result("elmo", 2)])
    )
    same = [result(name, 3, task="nli", data="rte") for name in ("baseline", "elmo")]
    worse = [result("baseline", 3), result("elmo", 2)]
    assert no_gain(Results(same + worse)) == "ELMo does not help with: ner, wnut17; nli, rte."


def test_weighting_and_place_compare_one_seed():
    found = Results(
        [
            result("baseline", 10), result("baseline", 99, seed=1), result("elmo", 20),
            result("elmo", 99, seed=1), result("elmo_top", 15), result("elmo_l2_1", 18),
            result("elmo_both", 21),
            result("baseline", 1, task="tagger", data="ewt"),
        ]
    )  # fmt: skip
    assert cells(tables.weighting(found)) == [
        ["ner, wnut17", "10.0", "15.0", "-", "18.0", "-", "20.0"]
    ]
    assert cells(tables.place(found)) == [["ner, wnut17", "10.0", "20.0", "21.0", "-"]]
    assert tables.weighting(Results([result("elmo", 1)])) is None


def test_shares_and_their_chart():
    found = Results(
        [
            result("baseline", 5, share=1), result("elmo", 9, share=1),
            result("baseline", 30, share=100), result("elmo", 40, share=100),
            result("elmo", 99, share=100, seed=1),
            result("baseline", 50, task="tagger", data="ewt"),
        ]
    )  # fmt: skip
    assert cells(tables.shares(found)) == [
        ["ner, wnut17", "1 %", "4", "5.0", "9.0"],
        ["ner, wnut17", "100 %", "400", "30.0", "40.0"],
    ]
    points = [(row["share"], row["score"]) for row in share_chart(found)["data"]["values"]]
    assert sorted(points) == [(1, 5), (1, 9), (100, 30), (100, 40)]
    assert share_chart(Results([result("elmo", 1)])) is None


@pytest.mark.parametrize(
    "elmo, expected",
    [
        ([(10, 50.0), (20, 60.0)], (20, 10)),
        ([(10, 49.9), (20, 49.9), (30, 50.0)], (20, 30)),
        ([(10, 1.0)], (20, None)),
    ],
)
def test_updates_needed(elmo, expected):
    # The first of two steps that are equally good counts.
    baseline = result("baseline", 0, dev=[(10, 30.0), (20, 50.0), (30, 50.0)])
    assert updates_needed(baseline, result("elmo", 0, dev=elmo)) == expected


def test_updates():
    found = Results(
        [
            result("baseline", 0, seed=1, dev=[(1000, 30.0), (2000, 50.0)]),
            result("elmo", 0, seed=1, dev=[(500, 55.0)]),
            result("elmo", 0, seed=2, dev=[(1, 99.0)]),
        ]
    )
    assert cells(tables.updates(found)) == [["ner, wnut17", "1", "2,000", "500", "75%"]]


def test_minutes():
    found = [result("baseline", 0, minutes=m, seed=m) for m in (1, 2)]
    found.append(result("elmo", 0, minutes=4))
    assert cells(tables.minutes(Results(found))) == [["ner, wnut17", "1.5", "4.0"]]


def test_markdown_sets_numbers_to_the_right():
    table = Table("What", ["name", "share", "left out"], [["a", "5.0%", "-"], ["b", "-", "x"]])
    assert table.markdown().splitlines() == [
        "*What*", "", "| name | share | left out |", "| --- | ---: | --- |",
        "| a | 5.0% | - |", "| b | - | x |",
    ]  # fmt: skip


def test_probe_tables(tmp_path):
    senses = {"layers": [0.5, 0.6], "most_frequent": 0.55, "instances": 1000, "ambiguous": 400}
    srsly.write_json(
        tmp_path / "word-sense.json",
        {**senses, "files": {"wsd/senseval2.jsonl": {**senses, "layers": [0.1, 0.2]}}},
    )
    tags = {"layers": [0.9, 0.95], "most_frequent": 0.8, "words": 2000, "tags": 17}
    srsly.write_json(tmp_path / "part-of-speech.json", tags)
    assert sense_table(tmp_path).columns == ["vectors", "senseval2", "all"]
    assert cells(sense_table(tmp_path)) == [
        ["layer 0", "10.0", "50.0"],
        ["layer 1", "20.0", "60.0"],
        ["most frequent sense in training", "55.0", "55.0"],
    ]
    assert cells(tag_table(tmp_path)) == [
        ["layer 0", "90.0"],
        ["layer 1", "95.0"],
        ["most frequent tag", "80.0"],
    ]
    assert sense_table(tmp_path / "none") is None and tag_table(tmp_path / "none") is None


def test_relative_gains_of_the_paper_follow_from_its_scores():
    for _, baseline, elmo, gain in PAPER["tasks"]["rows"]:
        before, after = float(baseline), float(elmo.split()[0])
        assert round(100 * (after - before) / (100 - before), 1) == pytest.approx(
            float(gain.rstrip("%")), abs=0.15
        )


def test_report_holds_ours_and_the_papers_apart(tmp_path):
    found = Results(
        [
            result("baseline", 40, dev=[(10, 30.0)]),
            result("elmo", 55, dev=[(10, 30.0)]),
            result("elmo", 50, share=10),
            result("baseline", 20, share=10),
        ]
    )
    save_figure(share_chart(found), tmp_path / "shares.png", title="")
    write(sections(found, PAPER, tmp_path), tmp_path)
    text = (tmp_path / "report.md").read_text("utf8")
    assert "| ner, wnut17 | ents_f | 40.0 | 55.0 | 25.0% |" in text
    assert "| SRL (semantic roles) | 81.4 | 84.6 | 17.2% |" in text
    assert "![Scores by the share of the training data; figure 1 of the paper](shares.png)" in text
    # Nothing of ours to set beside it, so nothing of the paper's either.
    assert "Table 2 of the paper" not in text and "Word senses" not in text
    page = (tmp_path / "report.html").read_text("utf8")
    assert '<td class="number">55.0</td>' in page
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(picture) == (tmp_path / "shares.png").read_bytes()
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_names_are_text_and_no_markup(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    table = Table("a < b", ["<i>"], [["<script>"]])
    section = Section("<h1>", ["&"], [table], [Figure(tmp_path / "a.png", '"')])
    write([section], tmp_path)
    page = (tmp_path / "report.html").read_text("utf8")
    assert "<script>" not in page and "<i>" not in page and "&lt;script&gt;" in page
