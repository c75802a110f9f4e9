"""The runs of a plan, their names, files and durations."""

from pathlib import Path

import pytest
import srsly
from experiments.plan import Corpus, Cut, Data, Plan
from experiments.rivals import missing, needed
from experiments.run import budget, planned_minutes

from tests.evidence.folders import EVIDENCE

SIZE = {
    "documents": {"train": 40},
    "raw_words": 1000,
    "tok2vec_words": None,
    "raw_minutes": {"text": 1, "floret": 2, "tok2vec": 4},
    "tasks": {"ner": {"steps": 7, "minutes": [2, 3]}},
}
CONTENT = {
    "converters": {"ner": ["convert.py", "{source}", "{out}"]},
    "sources": {"ner/a": "ner/a-{part}.tsv", "ner/b": "ner/b.tsv"},
    "also_scored": {"ner/a": ["ner/b"]},
}


def plan(*groups, **size):
    content = {**CONTENT, "sizes": {"tiny": {**SIZE, **size, "runs": list(groups)}}}
    return Plan(Path("plan.yml"), content)


def group(*variants, seeds=(0,), **rest):
    return {"data": ["ner/a"], "variants": variants, "seeds": seeds, **rest}


def test_runs_are_the_product_of_a_group_each_once():
    runs = plan(group("baseline", "elmo", seeds=[0, 1]), group("elmo", shares=[100, 5])).runs(
        "tiny"
    )
    assert [run.name for run in runs] == [
        "a/ner_baseline-0",
        "a/ner_elmo-0",
        "a/ner_baseline-1",
        "a/ner_elmo-1",
        "a-5pct/ner_elmo-0",
    ]
    assert [run.minutes for run in runs] == [2, 3, 2, 3, 3]
    assert {run.steps for run in runs} == {7}


def test_files_of_a_run():
    run = plan(group("elmo_top", shares=[5], seeds=[2])).run("tiny", "a-5pct/ner_elmo_top-2")
    assert run.folder == Path("training/tiny/a-5pct/ner_elmo_top-2")
    assert list(run.metrics.values()) == [
        Path("metrics/tiny/a-5pct/ner_elmo_top-2.json"),
        Path("metrics/tiny/b-5pct/ner_elmo_top-2.json"),
    ]
    # Only training documents are taken away.
    assert [str(corpus.path) for corpus in run.corpora] == [
        "corpus/ner/a-train-limit40-share5.spacy",
        "corpus/ner/a-dev.spacy",
        "corpus/ner/a-test.spacy",
        "corpus/ner/b-test.spacy",
    ]


def test_errors_are_made_in_its_own_test_part_alone():
    run = plan(group("elmo", noise=[5, 20])).run("tiny", "a/ner_elmo-0")
    assert {str(corpus.path): str(path) for corpus, path in run.metrics.items()} == {
        "corpus/ner/a-test.spacy": "metrics/tiny/a/ner_elmo-0.json",
        "corpus/ner/b-test.spacy": "metrics/tiny/b/ner_elmo-0.json",
        "corpus/ner/a-test-noise5.spacy": "metrics/tiny/a-noise5/ner_elmo-0.json",
        "corpus/ner/a-test-noise20.spacy": "metrics/tiny/a-noise20/ner_elmo-0.json",
    }
    assert run.name == "a/ner_elmo-0" and set(run.metrics) < set(run.corpora)


def test_a_group_may_train_for_another_time():
    tasks = {"ner": {"steps": 2, "minutes": [0.1, 0.2]}}
    short, long = plan(group("elmo", shares=[5], tasks=tasks), group("elmo")).runs("tiny")
    assert (short.steps, short.minutes, long.steps, long.minutes) == (2, 0.2, 7, 3)


def test_what_is_only_scored_on():
    assert plan().trained_on == {("ner", "b"): ("ner", "a")}


def test_a_whole_corpus_has_the_plain_name():
    assert Corpus(Data("ner", "a"), "dev", Cut()).path == Path("corpus/ner/a-dev.spacy")
    run = plan(group("baseline"), documents=None).run("tiny", "a/ner_baseline-0")
    assert run.corpus("train").path == Path("corpus/ner/a-train.spacy")


@pytest.mark.parametrize(
    "runs, message",
    [
        (group("glove"), "unknown variant 'glove'; .* baseline"),
        (group("elmo", data=["ner/c"]), "'ner/c' is not in the section"),
        (group("elmo", data=["a"]), "'a' is not in the section"),
    ],
)
def test_mistakes_in_a_plan_are_named(runs, message):
    with pytest.raises(ValueError, match=f"plan.yml: {message}"):
        plan(runs).runs("tiny")


def test_unknown_size_and_run():
    with pytest.raises(ValueError, match="has no size 'huge'; it has tiny"):
        plan().runs("huge")
    with pytest.raises(ValueError, match="size tiny has no run 'a/ner-0'"):
        plan().run("tiny", "a/ner-0")


def test_a_file_that_is_no_plan(tmp_path):
    with pytest.raises(FileNotFoundError, match="no plan .*plan.yml"):
        Plan.read(tmp_path / "plan.yml")
    srsly.write_yaml(tmp_path / "plan.yml", {"sizes": {}})
    with pytest.raises(ValueError, match="no section converters, sources, also_scored"):
        Plan.read(tmp_path / "plan.yml")


@pytest.fixture
def here(monkeypatch):
    """Use the configs of the project, without writing to its folder."""
    monkeypatch.chdir(EVIDENCE)


def test_resources_are_made_once_and_only_if_a_run_reads_them(here):
    of_both = plan(group("vectors", "elmo", "elmo_vectors")).runs("tiny")
    assert [(str(made.path), made.task) for made in needed(of_both)] == [
        ("rivals/tiny/vectors", None)
    ]
    (weights,) = needed(plan(group("pretrain"), lang="la").runs("tiny"))
    assert (weights.task, weights.lang, weights.path.parent) == ("ner", "la", Path("rivals/tiny"))
    assert needed(plan(group("baseline", "elmo")).runs("tiny")) == []


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Return a folder that stands for the project, with its configs."""
    (tmp_path / "configs").symlink_to(EVIDENCE.parent / "configs")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def test_what_exists_is_not_made_again(elsewhere):
    runs = plan(group("vectors")).runs("tiny")
    assert missing(runs) == needed(runs) != []
    Path("rivals/tiny/vectors").mkdir(parents=True)
    assert missing(runs) == []


def test_budget(elsewhere, monkeypatch):
    of_three = plan(group("baseline", "vectors", "elmo"))
    # 2, 2 and 3 of the runs, 1 of the text and 2 of floret.
    assert budget(of_three, "tiny", 1) == (
        "tiny: 3 runs, about 10 minutes in 1 processes; 3 runs left, about 10 minutes"
    )
    assert budget(of_three, "tiny", 2).startswith("tiny: 3 runs, about 5 minutes in 2 processes")
    monkeypatch.setattr("experiments.run.done", lambda run: run.variant != "elmo")
    assert budget(of_three, "tiny", 1).endswith("; 1 runs left, about 3 minutes")


LANGUAGES = ("la", "grc", "de", "cs")


@pytest.mark.parametrize(
    "size, minutes, cores",
    [("small", 20, 2), ("full", 6 * 60, 2), *((size, 75, 1) for size in LANGUAGES)],
)
def test_the_shipped_plan_keeps_its_budget(size, minutes, cores, here):
    plan = Plan.read(Path("plan.yml"))
    runs = plan.runs(size)
    assert planned_minutes(plan, runs, needed(runs)) / cores <= minutes


@pytest.mark.parametrize("size", LANGUAGES)
def test_every_language_is_judged_by_the_same_rules(size, here):
    plan = Plan.read(Path("plan.yml"))
    runs = plan.runs(size)
    # Two sets, four variants, three seeds, all labels and a tenth of them.
    assert len(runs) == 2 * 4 * 3 * 2
    assert {run.data.name.split("_")[0] for run in runs} == {run.lang for run in runs} == {size}
    assert {run.variant for run in runs} == {"baseline", "vectors", "elmo", "elmo_vectors"}
    for run in runs:
        (package,) = (EVIDENCE.parent / "models" / f"{size}_elmo_mini").glob("*/*.safetensors")
        assert run.weights == package.stem
        assert run.noise == ((5, 10, 20) if run.share == 100 else ())
        assert all(test.data.name in plan.names for test in run.metrics)


def test_the_shipped_plan_answers_the_papers_questions(here):
    runs = Plan.read(Path("plan.yml")).runs("full")
    sets = {str(run.data) for run in runs}
    assert {data.split("/")[0] for data in sets} == {
        "ner", "textcat", "tagger", "parser", "srl", "nli", "qa", "coref",
    }  # fmt: skip
    six = {"ner/wnut17", "srl/ewt", "textcat/sst5", "nli/sick", "qa/subjqa", "coref/litbank"}
    for data in sets:
        whole = [run for run in runs if str(run.data) == data and run.share == 100]
        seeds = {
            name: {run.seed for run in whole if run.variant == name}
            for name in ("baseline", "elmo", "vectors", "pretrain", "elmo_vectors")
        }
        assert seeds["baseline"] == seeds["elmo"] and 0 in seeds["elmo"]
        if data in six:
            assert seeds["elmo"] == {0, 1, 2}
            assert seeds["vectors"] == seeds["pretrain"] == seeds["elmo_vectors"] == {0}
    for variant in ("elmo_top", "elmo_average", "elmo_l2_1", "elmo_l2_0001", "elmo_output"):
        assert len({run.data for run in runs if run.variant == variant}) == 2
    shares = {(str(run.data), run.variant): set() for run in runs if run.share != 100}
    for run in runs:
        if (str(run.data), run.variant) in shares:
            shares[str(run.data), run.variant].add(run.share)
    assert len(shares) == 4
    assert all(actual == {1, 10, 100} for actual in shares.values())
