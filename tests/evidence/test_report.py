"""The report of invented scores has numbers that a person can check."""

import base64
import json
import re
from pathlib import Path

import pytest
import srsly
from experiments import tables
from experiments.curve_chart import noise_chart, share_chart
from experiments.findings import gains, progress, rivals, text_read
from experiments.gain_chart import gain_chart
from experiments.neighbor_table import neighbor_table
from experiments.plan import Data, Plan, Run
from experiments.probe_tables import sense_table, tag_table
from experiments.report import Figure, Section, all_results, sections, write
from experiments.results import (
    METRIC_NAMES,
    Result,
    Results,
    read_lines,
    read_results,
    record_of,
    updates_needed,
    write_lines,
)
from experiments.tables import Table

from spacy_elmo.lab.figures import save_figure
from tests.evidence.folders import EVIDENCE

SIZE = {"raw_words": None, "tok2vec_words": 5_000_000}
PAPER = srsly.read_yaml(EVIDENCE / "paper.yml")
RUN = {"minutes": 2.0, "documents": 400, "dev": [[10, 0.3], [20, 0.5], [30, 0.4]]}


def result(
    variant,
    score,
    *,
    task="ner",
    data="wnut17",
    share=100,
    seed=0,
    dev=(),
    minutes=1.0,
    noise=0,
    speed=None,
):
    return Result(
        task, data, share, variant, seed, score, minutes, 4 * share, tuple(dev), noise, speed
    )


def cells(table):
    return [list(row) for row in table.rows]


def test_results_are_read_from_what_runs_write(tmp_path):
    names = ("wnut17-noise5/ner_elmo-0", "wnut17-10pct/ner_elmo_l2_0001-2", "wnut17/ner_elmo-1")
    files = [tmp_path / f"{name}.json" for name in names]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"ents_f": 0.25, "speed": 1234.5, "run": RUN}))
    dev = ((10, 30.0), (20, 50.0), (30, 40.0))
    whole = Result("ner", "wnut17", 100, "elmo", 0, 25.0, 2.0, 400, dev, noise=5, speed=1234.5)
    part = Result("ner", "wnut17", 10, "elmo_l2_0001", 2, 25.0, 2.0, 400, dev, speed=1234.5)
    actual = read_results(tmp_path, files[:2])  # the third is of another plan
    assert {each.file(tmp_path) for each in actual} == set(files[:2])
    assert sorted(actual, key=lambda result: result.seed) == [whole, part]


def test_the_scores_behind_a_report_are_lines_in_one_order(tmp_path):
    ordered = [
        result("baseline", 20.5, dev=[(10, 19.25), (20, 21.0)]),
        result("elmo", 30.0, seed=0),
        result("elmo", 29.0, seed=1),
        result("baseline", 18.0, noise=5),
        result("baseline", 90.0, task="tagger", data="ewt", share=10),
    ]
    ordered.sort(key=lambda each: (each.task, each.data, each.share, each.noise))
    path = tmp_path / "scores.jsonl"
    write_lines(reversed(ordered), path)
    assert read_lines(path) == ordered


def test_a_report_goes_on_from_the_scores_of_the_last_one(tmp_path):
    metrics, earlier = tmp_path / "metrics", tmp_path / "scores.jsonl"
    old = [result("baseline", 20.0), result("elmo", 30.0, share=10, noise=5), result("elmo", 1.0)]
    write_lines(old, earlier)
    files = [metrics / "wnut17" / "ner_baseline-0.json"]
    files += [metrics / "wnut17-10pct-noise5" / "ner_elmo-0.json"]
    assert all_results(metrics, files, earlier) == dict(zip(files, old, strict=False))
    files[0].parent.mkdir(parents=True)
    files[0].write_text(json.dumps({"ents_f": 0.25, "run": RUN}))
    scores = {file: found.score for file, found in all_results(metrics, files, earlier).items()}
    assert scores == {files[0]: 25.0, files[1]: 30.0}
    with pytest.raises(ValueError, match=r"scores of a planned run"):
        all_results(metrics, [metrics / "gum" / "ner_elmo-0.json"], earlier)
    earlier.unlink()
    assert list(all_results(metrics, files, earlier)) == files[:1]
    files[0].unlink()
    with pytest.raises(ValueError, match=r"no DATASET/CONFIG-SEED.json"):
        all_results(metrics, files, earlier)


def test_a_report_says_how_many_runs_it_lacks():
    qa, ner = (
        Run("full", Data(task, name), "elmo", 0, 100, None, 1.0, {}, also)
        for task, name, also in (("qa", "a", (Data("qa", "b"),)), ("ner", "c", ()))
    )
    scored = {Path("metrics", "full", f"{name}.json") for name in ("a/qa_elmo-0", "c/ner_elmo-0")}
    assert progress([qa, ner], scored).startswith("Only 1 of 2 planned runs are in this report")
    assert progress([ner], scored) == "All 1 planned runs are in this report."


def test_a_score_belongs_to_the_file_that_its_run_writes():
    run = Run("full", Data("ner", "c"), "elmo", 2, 10, None, 1.0, {}, (), noise=(5,))
    scored = [result("elmo", 1.0, data="c", share=10, seed=2, noise=noise) for noise in (0, 5)]
    assert [one.file(Path("metrics", "full")) for one in scored] == list(run.metrics.values())


def test_scores_of_other_programs_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "ner_elmo-0.json"
    file.write_text('{"ents_f": 1.0}')
    with pytest.raises(ValueError, match='ner_elmo-0.json has no complete entry "run"'):
        read_results(tmp_path, [file])
    file.write_text('{"ents_f": 1.0, "run": {"minutes": 1.0}}')
    with pytest.raises(ValueError, match='ner_elmo-0.json has no complete entry "run"'):
        read_results(tmp_path, [file])
    file.write_text("{")
    with pytest.raises(
        ValueError, match="ner_elmo-0.json is not JSON .*Expecting .* evaluate again"
    ):
        read_results(tmp_path, [file])


def test_a_broken_file_of_scores_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match="a.json is not JSON .*Expecting .* remove it"):
        record_of(tmp_path / "a.json")


def test_every_task_has_a_metric():
    assert set(METRIC_NAMES) == set(srsly.read_yaml(EVIDENCE / "plan.yml")["converters"])


def test_tasks():
    actual = tables.tasks(
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
    assert list(actual.columns)[2:] == ["baseline", "vectors", "elmo", "fewer errors"]
    assert cells(actual) == [
        ["ner, wnut17", "F1", "50.0 ± 10.0 (3)", "45.0", "62.5 ± 3.5 (2)", "25.0%"],
        ["tagger, ewt", "accuracy", "80.0", "-", "-", "-"],
    ]


def seeds(variant, *scores, **rest):
    return [result(variant, score, seed=seed, **rest) for seed, score in enumerate(scores)]


def test_gains_are_told_from_chance_by_the_order_of_the_seeds():
    better = seeds("baseline", 29, 30, 31) + seeds("elmo", 31.1, 33, 35)
    rte = {"task": "nli", "data": "rte"}
    mixed = seeds("baseline", 29, 30, 31, **rte) + seeds("elmo", 31, 52, 54, **rte)
    sick = {"task": "nli", "data": "sick"}
    worse = seeds("baseline", 29, 30, 31, **sick) + seeds("elmo", 27.5, 28.9, **sick)
    assert gains(Results(better + mixed + worse)) == (
        "Every seed with ELMo is above every seed without it (with three on either side, chance alone does that"
        " once in twenty sets) on: ner, wnut17."
        " Every seed with ELMo is below every seed without it on: nli, sick."
        " Seeds with and without ELMo overlap, so that nothing is decided, on: nli, rte."
    )


def test_a_single_seed_has_no_spread():
    pair = [result("baseline", 30), result("elmo", 30.01)]
    same = [result(name, 3, task="nli", data="rte") for name in ("baseline", "elmo")]
    assert gains(Results(pair + same)) == (
        "With a single seed, so that chance cannot be ruled out, ELMo is above the baseline on: ner, wnut17."
        " With a single seed ELMo is not above the baseline on: nli, rte."
    )


@pytest.mark.parametrize("variants", [["baseline"], ["elmo"], ["baseline", "vectors"]])
def test_nothing_is_claimed_without_a_pair(variants):
    actual = Results([result(name, 30) for name in variants])
    assert gains(actual) == ""
    # Of a part of the data, neither.
    pair = [result(name, 30, share=10) for name in ("baseline", "elmo")]
    assert gains(Results(pair)) == ""


def test_rivals_are_held_against_both_sides():
    actual = [*seeds("baseline", 20, 40), *seeds("elmo", 30, 40), result("vectors", 36)]
    actual += [*seeds("pretrain", 29, 30), result("elmo_vectors", 10)]
    actual += [result(name, 30, data="b") for name in ("baseline", "elmo", "vectors")]
    chance = "(one seed, so that chance cannot be ruled out)"
    assert rivals(Results(actual)) == (
        f"`vectors` {chance} is above the mean of the baseline on 1 of 2 sets, and above the mean of `elmo` on 1: ner,"
        " wnut17. `pretrain` is above the mean of the baseline on 0 of 1 sets, and above the mean of `elmo` on 0."
        f" `elmo_vectors` {chance} is above the mean of the baseline on 0 of 1 sets, and above the mean of `elmo` on 0."
    )


def test_how_much_text_the_rivals_have_read():
    assert text_read(Results([result("elmo", 1)]), SIZE) == ""
    card = "What the biLM has read is on the card of its weights."
    vectors = "The static vectors learned from all of the raw text."
    first = "`pretrain` learned from the first 5,000,000 words of the raw text, in one pass."
    both = [result("elmo_vectors", 1), result("pretrain", 1)]
    assert text_read(Results(both), SIZE) == f"{vectors} {first} {card}"
    assert text_read(Results(both[:1]), SIZE) == f"{vectors} {card}"


def test_a_set_that_is_only_scored_on_says_what_was_trained_on():
    xquad = {"task": "qa", "data": "xquad-en"}
    dev = [(10, 30.0)]
    actual = Results(
        [
            result(variant, score, dev=dev, **data)
            for variant, score in (("baseline", 20), ("elmo", 60))
            for data in (xquad, {"task": "qa", "data": "subjqa"})
        ],
        {("qa", "xquad-en"): ("qa", "subjqa")},
    )
    both = ["qa, subjqa", "qa, subjqa → xquad-en"]
    assert [row[0] for row in tables.tasks(actual).rows] == both
    assert gains(actual).endswith(f"on: {'; '.join(both)}.")
    for table in (tables.updates(actual), tables.minutes(actual)):
        assert [row[0] for row in table.rows] == ["qa, subjqa"]


def test_tables_without_rows_are_none():
    for alone in ("baseline", "elmo"):
        actual = Results([result(alone, 1)])
        assert tables.updates(actual) is tables.minutes(actual) is None
    assert tables.tasks(actual) is None


def test_weighting_and_place_compare_one_seed():
    actual = Results(
        [
            result("baseline", 10), result("baseline", 99, seed=1), result("elmo", 20),
            result("elmo", 99, seed=1), result("elmo_top", 15), result("elmo_l2_1", 18),
            result("elmo_both", 21),
            *(result(variant, score, task="nli", data="sick")
              for variant, score in (("baseline", 50), ("elmo", 60), ("elmo_input", 55))),
            result("baseline", 1, task="tagger", data="ewt"),
        ]
    )  # fmt: skip
    assert cells(tables.weighting(actual)) == [
        ["ner, wnut17", "10.0", "15.0", "-", "18.0", "-", "20.0"]
    ]
    # What the config of a task is already stands in the column of its place.
    assert cells(tables.place(actual)) == [
        ["ner, wnut17", "10.0", "20.0", "21.0", "-"],
        ["nli, sick", "50.0", "55.0", "-", "60.0"],
    ]
    assert tables.weighting(Results([result("elmo", 1)])) is None


def test_shares_and_their_chart():
    actual = Results(
        [
            result("baseline", 5, share=1), result("elmo", 9, share=1),
            result("baseline", 30, share=100), result("elmo", 40, share=100),
            result("elmo", 99, share=100, seed=1), result("elmo_top", 35, share=100),
            result("baseline", 50, task="tagger", data="ewt"),
        ]
    )  # fmt: skip
    assert cells(tables.shares(actual)) == [
        ["ner, wnut17", "1 %", "4", "5.0", "9.0"],
        ["ner, wnut17", "100 %", "400", "30.0", "40.0"],
    ]
    assert share_chart(actual) is None  # two points are no curve
    actual = Results([*actual.all, result("elmo", 20, share=10)])
    points = [(row["share"], row["score"]) for row in share_chart(actual)["data"]["values"]]
    assert sorted(points) == [(1, 5), (1, 9), (10, 20), (100, 30), (100, 40)]
    assert share_chart(Results([result("elmo", 1)])) is None


def test_shares_of_several_seeds():
    some = [*seeds("elmo", 10, 20, share=10), *seeds("vectors", 5, 15, share=10)]
    found = Results([*some, *seeds("elmo", 30, 40, 99)])
    assert cells(tables.shares(found)) == [
        ["ner, wnut17", "10 %", "40", "10.0 ± 7.1 (2)", "15.0 ± 7.1 (2)"],
        ["ner, wnut17", "100 %", "400", "-", "35.0 ± 7.1 (2)"],
    ]


def test_text_with_errors_stands_apart():
    clean = [*seeds("baseline", 50, 60), *seeds("elmo", 70, 80), result("elmo", 9, share=10)]
    noisy = [*seeds("baseline", 30, 32, noise=20), *seeds("elmo", 60, 62, noise=20)]
    others = [result("elmo", 90, data="other")]
    found = Results([*noisy, *clean, *others])
    assert cells(tables.noise(found)) == [
        ["ner, wnut17", "0 %", "55.0 ± 7.1 (2)", "75.0 ± 7.1 (2)"],
        ["ner, wnut17", "20 %", "31.0 ± 1.4 (2)", "61.0 ± 1.4 (2)"],
    ]
    rows = noise_chart(found)["data"]["values"]
    assert sorted((row["noise"], row["score"]) for row in rows) == [
        (0, 55), (0, 75), (20, 31), (20, 61),
    ]  # fmt: skip
    # Every other table is of text as it was.
    assert [row[2:4] for row in cells(tables.tasks(found))] == [
        ["55.0 ± 7.1 (2)", "75.0 ± 7.1 (2)"]
    ]
    assert tables.noise(Results(clean)) is noise_chart(Results(clean)) is None


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


def test_gains_are_drawn_as_in_the_table_beside_the_papers():
    actual = Results(
        [
            result("baseline", 40),
            result("baseline", 60, seed=1),
            result("elmo", 60),
            result("elmo", 80, seed=1),
            result("vectors", 55),
            result("elmo", 1, share=10),
            result("baseline", 100, task="tagger"),
            result("elmo", 90, task="tagger"),
            result("elmo", 90, task="parser"),
        ]
    )
    same_kind = {"ner/wnut17": 21, "tagger/wnut17": 5, "parser/wnut17": 5}
    rows = gain_chart(actual, same_kind)["data"]["values"]
    assert {row["set"] for row in rows} == {"ner, wnut17 (F1)"}
    paper = "ELMo in the paper, on other data of the same kind"
    # All against 50, the mean of the baselines.
    assert {row["model"]: row["gain"] for row in rows} == {
        "ELMo": pytest.approx(40), "static vectors": pytest.approx(10), paper: 21,
    }  # fmt: skip
    assert [row[-1] for row in cells(tables.tasks(actual))] == ["40.0%", "-"]
    assert gain_chart(Results([result("baseline", 1)]), {"ner/wnut17": 21}) is None


def test_every_set_that_the_paper_is_beside_is_in_the_plan():
    runs = Plan.read(EVIDENCE / "plan.yml").runs("full")
    assert set(PAPER["same_kind"]) <= {str(run.data) for run in runs}
    marks = sorted(PAPER["same_kind"].values())
    assert marks == sorted(float(row[-1].rstrip("%")) for row in PAPER["tasks"]["rows"])


def test_updates():
    actual = Results(
        [
            result("baseline", 0, seed=1, dev=[(1000, 30.0), (2000, 50.0)]),
            result("elmo", 0, seed=1, dev=[(500, 55.0)]),
            result("elmo", 0, seed=2, dev=[(1, 99.0)]),
        ]
    )
    row = ["ner, wnut17", "1", "2,000 (end)", "500", "75%"]
    assert cells(tables.updates(actual)) == [row]
    actual.all[0] = result("baseline", 0, seed=1, dev=[(1000, 60.0), (2000, 50.0)])
    assert cells(tables.updates(actual)) == [["ner, wnut17", "1", "1,000", "never", "-"]]
    actual.all[1] = result("elmo", 0, seed=1, dev=[(0, 1.0), (1500, 60.0)])
    assert cells(tables.updates(actual)) == [["ner, wnut17", "1", "1,000", "1,500", "-"]]


def test_minutes():
    actual = [result("baseline", 0, minutes=m, seed=m, speed=12344.0 * m) for m in (1, 2, 9)]
    actual.append(result("elmo", 0, minutes=4))
    row = ["ner, wnut17", "2.0", "4.0", "25,000", "-"]
    assert cells(tables.minutes(Results(actual))) == [row]


def test_markdown_sets_numbers_to_the_right():
    table = Table("What", ["name", "share", "left out"], [["a", "5.0%", "-"], ["b", "-", "x|y"]])
    assert table.markdown().splitlines() == [
        "*What*", "", "| name | share | left out |", "| --- | ---: | --- |",
        "| a | 5.0% | - |", "| b | - | x\\|y |",
    ]  # fmt: skip


def write_senses(path, first):
    senses = {
        "layers": [0.5, 0.6], "most_frequent": 0.55, "first": first, "instances": 1000, "ambiguous": 400,
    }  # fmt: skip
    files = {"wsd/senseval2.jsonl": {**senses, "layers": [0.1, 0.2]}}
    srsly.write_json(path, {**senses, "files": files})


def test_first_senses_are_shown_where_they_are_known(tmp_path):
    write_senses(tmp_path / "word-sense.json", None)
    unknown = sense_table(tmp_path)
    assert unknown.caption.endswith(
        "words that do not occur in training have no answer here; the paper gives them the first sense"
    )
    write_senses(tmp_path / "word-sense.json", 0.65)
    known = sense_table(tmp_path)
    assert known.caption.endswith("training get the first sense, as in the paper")
    assert cells(known) == [*cells(unknown), ["first sense of WordNet", "65.0", "65.0"]]


def test_neighbors(tmp_path):
    assert neighbor_table(tmp_path) is None
    use = {"word": "bank", "source": "a.jsonl:7", "sense": None, "points": {"layer 1": [0, 0]}}
    near = {**use, "left": "a | b c d e the ", "right": " .", "sense": "bank%1:14:00::"}
    far = {**near, "source": "b.jsonl:1"}
    query = {**use, "left": "The ", "right": " lends", "source": "query"}
    query["neighbors"] = {"layer 1": [{**near, "cosine": 0.756}, {**near, "cosine": 0.5}]}
    written = {"occurrences": [near, far, near], "queries": [query]}
    srsly.write_json(tmp_path / "neighbors.json", written)
    table = neighbor_table(tmp_path)
    assert cells(table) == [["The BANK lends", "layer 1", "0.76", "b c d e the BANK ."]]
    assert table.caption.startswith("Of 3 uses in a.jsonl, b.jsonl, ")
    srsly.write_json(tmp_path / "neighbors.json", {**written, "queries": []})
    assert neighbor_table(tmp_path) is None


def test_probe_tables(tmp_path):
    write_senses(tmp_path / "word-sense.json", None)
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
    for *_, baseline, elmo, gain in PAPER["tasks"]["rows"]:
        before, after = float(baseline), float(elmo.split()[0])
        assert round(100 * (after - before) / (100 - before), 1) == pytest.approx(
            float(gain.rstrip("%")), abs=0.15
        )


def test_report_holds_ours_and_the_papers_apart(tmp_path):
    actual = Results(
        [
            result("baseline", 40, dev=[(10, 30.0)]),
            result("elmo", 55, dev=[(10, 30.0)]),
            result("elmo", 50, share=10),
            result("baseline", 20, share=10),
            result("elmo", 45, share=1),
        ]
    )
    save_figure(share_chart(actual), tmp_path / "shares.png")
    save_figure(gain_chart(actual, {}), tmp_path / "gains.png")
    write(sections(actual, SIZE, PAPER, tmp_path), tmp_path, "All of it.")
    text = (tmp_path / "report.md").read_text("utf8")
    assert text.startswith("# What ELMo brings to spaCy\n\nAll of it.\n\n## Tasks\n")
    assert "| ner, wnut17 | F1 | 40.0 | 55.0 | 25.0% |" in text
    assert "| SRL (semantic roles) | F1 | 81.4 | 84.6 | 17.2% |" in text
    assert "![Scores by the share of the training data; figure 1 of the paper](shares.png)" in text
    # Nothing of ours to set beside it, so nothing of the paper's either.
    assert "Table 2 of the paper" not in text and "Word senses" not in text
    page = (tmp_path / "report.html").read_text("utf8")
    assert '<td class="number">55.0</td>' in page and "<p>All of it.</p>" in page
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert [base64.b64decode(picture) for picture in pictures] == [
        (tmp_path / name).read_bytes() for name in ("gains.png", "shares.png")
    ]
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_baselines_alone_make_a_report(tmp_path):
    write(sections(Results([result("baseline", 40)]), SIZE, PAPER, tmp_path), tmp_path, "")
    text = (tmp_path / "report.md").read_text("utf8")
    assert "| ner, wnut17 | F1 | 40.0 | - |" in text
    assert "## Time" not in text and "## Less data" not in text


def test_nothing_of_the_paper_stands_beside_another_language(tmp_path):
    found = Results(
        [
            *(result(name, 40, dev=[(10, 30.0)]) for name in ("baseline", "elmo")),
            result("elmo", 30, noise=5),
        ]
    )
    save_figure(noise_chart(found), tmp_path / "noise.png")
    title = "What ELMo brings to spaCy: Latin"
    write(sections(found, SIZE, {}, tmp_path), tmp_path, "All of it.", title)
    text = (tmp_path / "report.md").read_text("utf8")
    assert text.startswith(f"# {title}\n") and "of the paper" not in text
    assert "## Errors in the text" in text and "](noise.png)" in text
    assert f"<title>{title}</title>" in (tmp_path / "report.html").read_text("utf8")


def test_what_our_scores_cannot_be_compared_with_is_said(tmp_path):
    scores = [
        result(name, 40, task=task, data="a", dev=[(10, 30.0)])
        for task in ("qa", "srl")
        for name in ("baseline", "elmo", "elmo_top", "elmo_both", "vectors")
    ]
    actual = {s.title: s for s in sections(Results(scores), SIZE, PAPER, tmp_path)}
    assert "SQuAD takes the best of several" in " ".join(actual["Tasks"].texts)
    assert "learned from all of the raw text" in " ".join(actual["Tasks"].texts)
    for title in ("Which layers", "Where ELMo enters"):
        assert "of its development sets" in " ".join(actual[title].texts)


def test_names_are_text_and_no_markup(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    table = Table("a < b", ["<i>"], [["<script>"]])
    section = Section("<h1>", ["&"], [table], [Figure(tmp_path / "a.png", '"')])
    write([section], tmp_path, "1 < 2")
    page = (tmp_path / "report.html").read_text("utf8")
    assert "<script>" not in page and "<i>" not in page and "&lt;script&gt;" in page


def test_sets_are_named_as_people_write_them():
    names = Plan.read(EVIDENCE / "plan.yml").names
    trained_on = {("qa", "xquad-en"): ("qa", "subjqa")}
    results = Results([], trained_on, names)
    assert results.label("ner", "wnut17") == "ner, WNUT17"
    assert results.label("qa", "xquad-en") == "qa, SubjQA \u2192 XQuAD"
    assert results.label("ner", "mine") == "ner, mine"
    # Every set of the plan has one.
    sources = Plan.read(EVIDENCE / "plan.yml").content["sources"]
    assert {source.partition("/")[2] for source in sources} == set(names)
