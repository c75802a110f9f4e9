"""The speed benchmark: its sentences, its rounds and its tables."""

import itertools

import latency
import numpy as np
import precision
import pytest
import speed
import torch
from contest import rounds as rounds_module
from contest.figure import draw
from contest.rounds import Result, contenders
from contest.targets import Side


def result(kind, *speeds, size="small", batch=32, threads=1, precision="float32"):
    return Result(threads, size, Side(kind, precision), batch, list(speeds), 100.0)


RESULTS = [
    result("network", 1000.0, 3000.0, 1300.0),
    result("nlp.pipe", 900.0, 2700.0, 1300.0),
    result("AllenNLP", 100.0, 200.0, 100.0),
]


def test_a_ratio_is_within_a_round():
    assert RESULTS[0].speed == 1300
    assert RESULTS[0].times(RESULTS[2]) == 13  # of 10, 15 and 13


def test_table():
    head, network, *_ = speed.table(RESULTS)
    assert head.split() == "small, threads: 1 batches of 32".split()
    assert network.split() == "network, float32 1,300 w/s 100 MB".split()


def test_only_targets_of_two_measured_contenders():
    _, *lines = speed.targets(RESULTS)
    assert [line.split() for line in lines] == [
        "small to AllenNLP 1 12.00 13.00".split(),
        "small, nlp.pipe to the network 1 0.90 0.90".split(),
    ]


def test_a_failed_process_has_no_further_figures(monkeypatch, tmp_path, capsys):
    class Process:
        def __init__(self, kind, *_):
            self.kind = kind

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def measure(self, start, stop, batch):
            if self.kind == "AllenNLP" and batch == 32:
                raise RuntimeError("AllenNLP has failed: see above")
            return {"seconds": 1.0, "peak": 5.0}

    monkeypatch.setattr(rounds_module, "ContenderProcess", Process)
    monkeypatch.setattr(rounds_module, "_write_files", lambda *_: None)
    text = tmp_path / "text.txt"
    text.write_text("Anna left . \n" * 50)
    sides = [Side("network"), Side("AllenNLP")]
    actual = rounds_module.compare(
        "small", sides, batches=[1, 32, 256], rounds=2, threads=1, text=text, allennlp=None
    )
    assert "AllenNLP has failed" in capsys.readouterr().err
    _, network, allennlp = speed.table(actual)
    assert len(network.split()) == 2 + 3 * 4
    assert allennlp.split()[6:] == ["-", "-"] and allennlp.split()[3] == "w/s"
    _, line = speed.targets(actual)
    assert line.split()[-3:] == ["1.00", "-", "-"]


def test_limits():
    actual = {"import": {"added": 41.25}, "one sentence, threads 2": {"float32": {"median": 3.456}}}
    added, one = speed.limits(actual)
    assert added.split()[-5:] == ["<", "50", "ms", "41.2", "ms"]
    assert one.split()[-5:] == ["<", "5", "ms", "3.46", "ms"]


def test_contenders():
    sides = {(side.kind, side.precision) for side in contenders("mini", ["int8"], allennlp=False)}
    assert sides == {("network", "int8"), ("nlp.pipe", "int8"), ("onnxruntime", "float32")}
    small = [side.kind for side in contenders("small", ["float32"], allennlp=True)]
    assert small[-3:] == ["AllenNLP", "BERT-base", "BERT, 6 layers"]


def test_rounds_read_new_sentences_sorted_by_length(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"It is {'very ' * (n % 7)}n{n} ." for n in range(600)), "utf8")
    plan = rounds_module._plan([1, 8], rounds=2, minimum=5)
    sentences = rounds_module._sentences(text, plan)
    assert [(part.batch, part.stop - part.start) for part in plan] == [
        (1, 5),
        (1, 5),
        (8, 8),
        (8, 8),
    ]
    assert all(one.stop == other.start for one, other in itertools.pairwise(plan))
    for part in plan:
        lengths = [len(words) for words in sentences[part.start : part.stop]]
        assert lengths == sorted(lengths)
    assert len(sentences) == 26 + rounds_module.RUNNING_TEXT
    assert len({" ".join(words) for words in sentences}) == len(sentences)
    again = rounds_module._sentences(text, rounds_module._plan([256], rounds=1, minimum=1))
    assert again[-1] in again[:600]  # from the start again


def test_figure(tmp_path):
    draw(RESULTS, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes()[:4] == b"\x89PNG"


def test_latency_leaves_the_warm_up_out(monkeypatch):
    """Ten texts take as many milliseconds as their number, but the first takes a second."""
    ends = np.cumsum([1.0, *(0.001 * n for n in range(1, 10))])
    clock = np.stack([np.concatenate([[0], ends[:-1]]), ends], 1).ravel().tolist()
    monkeypatch.setattr(latency.time, "perf_counter", iter(clock).__next__)
    actual = latency.measure(lambda _: None, ["text"] * 10)
    assert actual == {"median": pytest.approx(5.0), "90 %": pytest.approx(8.2)}


def test_cosines():
    exact = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 4.0], [1.0, 0.0]]])
    other = torch.tensor([[[2.0, 0.0], [0.0, 1.0]], [[4.0, 3.0], [1.0, 0.0]]])
    same, turned = precision.cosines(exact, other)
    assert list(same.values()) == pytest.approx([1.0, 1.0, 1.0])
    assert turned["least"] == pytest.approx(0.96) and turned["mean"] == pytest.approx(0.98)
    assert turned["1 %"] == pytest.approx(0.9604)
