"""The experiments from labelled files to a report, with few steps on little data."""

import json
import runpy
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from experiments import charts, corpora, ocr_noise, report, results, run
from experiments.plan import Plan
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

EVIDENCE = Path(__file__).parents[2] / "evidence"


def test_every_score_of_a_report_is_planned():
    """And the reports whose scores are kept have all planned scores."""
    plan = Plan(EVIDENCE / "plan.yml")
    for size in ("base", "mini", "tasks", "untuned_ner", "la_base", "grc", "de", "cs"):
        runs = plan.runs(size)
        planned = {results.key_of(each, test) for each in runs for test in each.tests}
        assert planned == {each.key for each in results.read(EVIDENCE / results.scores_file(size))}


def test_runs_read_the_text_as_it_is_and_do_not_end_early(monkeypatch):
    monkeypatch.chdir(EVIDENCE)
    for each in Plan().runs("base"):
        config = run.run_config(each)
        assert config["training"]["patience"] == 0 and config["training"]["max_steps"] == 3000
        assert "augmenter" not in config["corpora"]["train"]


def test_errors_change_words_and_nothing_else():
    words = ["recognition", "of", "characters", "42"] * 50
    docs = DocBin(docs=[Doc(Vocab(), words=words, ents=["B-X", "I-X", "O", "O"] * 50)])
    for share in (0.0, 0.2, 1.0):
        (noisy,) = ocr_noise.corrupt(docs, share, seed=0).get_docs(Vocab())
        changed = [token.text != word for token, word in zip(noisy, words, strict=True)]
        assert np.mean([changed[i] for i in range(200) if words[i] != "42"]) == pytest.approx(
            share, abs=0.1
        )
        assert not any(changed[3::4])
        assert [(ent.start, ent.end) for ent in noisy.ents][:2] == [(0, 2), (4, 6)]


COREF = [
    {
        "sentences": [["Anna", "saw", "Bob", "."], ["She", "waved", "."], ["He", "left", "."]],
        "clusters": [[[0, 0, 1, "person"], [1, 0, 1]], [[0, 2, 3], [2, 0, 1]]],
    },
    {"sentences": [["The", "old", "man", "slept", "."], ["He", "snored", "."]], "clusters": [[[0, 0, 3], [1, 0, 1]]]},
]  # fmt: skip
SRL = [
    {
        "tokens": ["Anna", "asked", "Bob", "to", "leave", "today", "."],
        "predicates": [
            {"index": 1, "frame": "ask.01", "args": [[0, 1, "ARG0"], [2, 3, "ARG2"], [3, 6, "ARG1"]]},
            {"index": 4, "frame": "leave.01", "args": [[2, 3, "ARG0"], [5, 6, "ARGM-TMP"]]},
        ],
    },
    {"tokens": ["Rain", "fell"], "predicates": [{"index": 1, "frame": "fall.01", "args": [[0, 1, "ARG1"]]}]},
    {"tokens": ["Oh", "!"], "predicates": []},
]  # fmt: skip
QA = [
    {"question": " Who\ncame?", "context": "Anna came by train.", "answers": [{"text": "Anna", "start": 0}]},
    {"question": "How?", "context": "Anna came by train.", "answers": [{"text": "by train", "start": 10}]},
    {"question": "When?", "context": "In the night Bob left.", "answers": [{"text": "In the nig", "start": 0}]},
    {"question": "Why?", "context": "Bob left.", "answers": []},
]  # fmt: skip
# Neither sentence tells the label: it is whether they name the same.
NLI = [
    {"premise": premise, "hypothesis": hypothesis, "label": label}
    for premise, hypothesis, label in [
        ("the cat sat", "a  cat", "yes"),
        ("the cat sat", "a dog", "no"),
        ("the dog\nsat", "a dog", "yes"),
        ("the dog sat", "a cat", "no"),
    ]
]
PLAN = """
sizes:
  tiny:
    title: Tiny
    weights: en_mini_v4
    documents: {dev: 2}
    raw_words: 1000
    steps: {ner: 2, srl: 2, nli: 2, qa: 2, coref: 2}
    runs:
      - data: [ner/wnut17]
        variants: [baseline, elmo]
        seeds: [0, 1]
        noise: [20]
      - {data: [ner/wnut17], variants: [elmo_vectors, elmo_both], seeds: [0]}
      - {data: [ner/wnut17], variants: [elmo], seeds: [0], shares: [1, 50]}
      - {data: [qa/subjqa], variants: [baseline, elmo], seeds: [0]}
      - {data: [srl/ewt, nli/sick, coref/litbank, textcat/sst5], variants: [elmo], seeds: [0]}
"""


def in_this_process(command, **kwargs):
    """Run a Python program."""
    arguments = command[1:]
    if arguments[0] == "-m":
        runner, arguments = runpy.run_module, arguments[1:]
    else:
        runner = runpy.run_path
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", list(map(str, arguments)))
        try:
            runner(arguments[0], run_name="__main__")
        except SystemExit as error:
            assert not error.code


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project with a small plan, and its data. There is no text classification, so its run is skipped."""
    for name in ("tasks", "experiments"):
        shutil.copytree(EVIDENCE / name, tmp_path / "evidence" / name)
    for name in ("configs", "projects"):
        (tmp_path / name).symlink_to(EVIDENCE.parent / name)
    data = EVIDENCE.joinpath("plan.yml").read_text("utf8").partition("\nsizes:")[0]
    (tmp_path / "evidence/plan.yml").write_text(data + PLAN, "utf8")
    for name in ("paper.yml", "register.py"):
        shutil.copy(EVIDENCE / name, tmp_path / "evidence")
    names = (EVIDENCE.parent / "corpus/sample/ner/sample-test.tsv").read_text("utf8")
    text = tmp_path / "data/pretrain-en/train-00.txt"
    text.parent.mkdir(parents=True)
    shutil.copy(EVIDENCE.parent / "corpus/sample/pretrain-en/train-00.txt", text)
    for part in ("train", "dev", "test"):
        files = {f"ner/wnut17-{part}.tsv": "\n\n".join(names.split("\n\n")[:10]) + "\n"}
        for name, records in (
            ("srl/ewt", SRL),
            ("nli/sick", NLI),
            ("qa/subjqa", QA),
            ("coref/litbank", COREF),
        ):
            # Questions of the development part are left out of the training part of SubjQA.
            kept = records[2:] if (name, part) == ("qa/subjqa", "dev") else records
            files[f"{name}-{part}.jsonl"] = "\n".join(map(json.dumps, kept))
        files["qa/xquad-en.jsonl"] = files.get("qa/subjqa-test.jsonl", "")
        for name, content in files.items():
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf8")
    monkeypatch.chdir(tmp_path / "evidence")
    # Each run and each converter would start a process.
    monkeypatch.setattr(run, "ProcessPoolExecutor", lambda *_, **__: ThreadPoolExecutor(1))
    monkeypatch.setattr(corpora.subprocess, "run", in_this_process)
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_from_data_to_a_report(project, monkeypatch, capsys):
    pytest.importorskip("floret")
    run.run(Plan(), "tiny", project / "data", 1)
    assert "elmo-0 is skipped: there is no" in capsys.readouterr().out
    found = results.read(results.scores_file("tiny"))
    # Four runs on two test parts, two variants, two shares, qa twice on two sets, srl, nli and coref.
    assert len(found) == 8 + 2 + 2 + 4 + 3
    assert len(list(DocBin().from_disk("corpus/qa/subjqa-train.spacy").get_docs(Vocab()))) == 2
    run.run(Plan(), "tiny", project / "data", 1)
    assert "training/tiny/sst5/textcat_elmo-0 is skipped" in capsys.readouterr().out
    assert results.read(results.scores_file("tiny")) == found
    monkeypatch.setattr("sys.argv", ["report", "tiny"])
    report.main()
    page = Path("report/tiny/report.md").read_text("utf8")
    assert page.startswith("# What ELMo brings to spaCy: Tiny")
    assert "| ner, WNUT17 | F1 |" in page and "| qa, SubjQA → XQuAD |" in page
    for picture in ("gains.png", "shares.png", "noise.png", "layers.png"):
        assert f"({picture})" in page and Path("report/tiny", picture).stat().st_size > 1000
    assert charts.read_gains(Path("report/tiny"))[0]["set"].startswith(
        "Tiny, named entities: WNUT17"
    )


def test_cells_by_hand():
    """Means and deviations over seeds, errors removed, and the step at which ELMo is as good as the baseline."""

    def result(variant, seed, score, dev):
        return results.Result("ner", "wnut17", 100, variant, seed, score, 1.0, 10, dev, 0, 1234.0)

    scores = [
        result("baseline", 0, 40.0, ((10, 30.0), (20, 50.0))),
        result("baseline", 1, 60.0, ((10, 30.0), (20, 20.0))),
        result("elmo", 0, 70.0, ((10, 50.0), (20, 60.0))),
        result("elmo", 1, 80.0, ((10, 10.0), (20, 20.0))),
    ]
    page = report.report(results.Results(scores, Plan(EVIDENCE / "plan.yml")), {}, Path(), "T")
    assert "| ner, WNUT17 | F1 | 50.0 ± 14.1 (2) | 75.0 ± 7.1 (2) | 50.0% |" in page
    assert "above every seed without it" in page
    assert "| ner, WNUT17 | 0 | 20 (end) | 10 | 50% |" in page
    assert "| ner, WNUT17 | 1 | 10 | never | - |" in page
    assert "| ner, WNUT17 | 1.0 | 1.0 | 1,200 | 1,200 |" in page
