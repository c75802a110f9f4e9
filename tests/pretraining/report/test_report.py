"""The report of a run draws the values of the log; its page needs no other file and runs no script."""

import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.report.chart import (  # fmt: skip
    BOTTOM,
    LEFT,
    MAX_POINTS,
    RIGHT,
    TOP,
    line_chart,
    round_numbers,
    short,
    thinned,
)
from spacy_elmo.pretraining.report.report import report, write_report
from spacy_elmo.pretraining.run_folder import prepare_run_folder
from spacy_elmo.pretraining.training.loop import train
from tests.pretraining.conftest import log_of


def row(step, **fields):
    return {
        "step": step, "steps": 40, "epoch": step / 10, "tokens": 100 * step, "loss": 5.0, "learn_rate": 0.001,
        "grad_norm": 0.5, "tokens_per_second": 1000.0, "minutes": step / 600, "dev": None, "best": False, **fields,
    }  # fmt: skip


def perplexity(mean):
    return {
        "forward": mean - 1, "backward": mean + 1, "mean": mean, "targets": 1234, "unk_share": 0.25,
        "forward_known": mean + 9, "backward_known": mean + 11, "mean_known": mean + 10, "vocab_size": 20,
    }  # fmt: skip


def config(**card):
    model = {
        "dim": 8, "projection": 4, "layers": 1, "char_dim": 4, "filters": [[1, 4], [3, 4]], "highways": 1,
        "max_characters": 12,
    }  # fmt: skip
    return PretrainConfig.of({"model": model, "training": {"max_steps": 40}, "card": card})


class Page(HTMLParser):
    """Tags, attributes and text of a page; an unbalanced tag fails."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(page)
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def points(path):
    """Return [(x, y)] from the attribute `d` of a path."""
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_places_of_a_chart():
    """The highest value is at the top edge, the lowest at the bottom, the last x at the right edge."""
    chart = line_chart("t", "u", [0, 5, 10], {"a": [2.0, 1.0, 3.0]}, "point {}".format)
    middle = (LEFT + RIGHT) / 2
    assert points(chart.curves[0].path) == [
        (LEFT, (TOP + BOTTOM) / 2), (middle, BOTTOM), (RIGHT, TOP),
    ]  # fmt: skip
    ticks = {tick.label: tick.at for tick in chart.x_ticks}
    assert list(ticks) == ["0", "2", "4", "6", "8", "10"]
    assert (ticks["0"], ticks["4"]) == (LEFT, pytest.approx(LEFT + 0.4 * (RIGHT - LEFT)))
    assert [stop.text for stop in chart.stripes] == ["point 0", "point 1", "point 2"]


def test_a_logarithmic_axis_has_equal_ratios_at_equal_distances():
    chart = line_chart("t", "", [1, 2, 3], {"a": [1.0, 10.0, 100.0]}, str, log=True)
    assert [y for _, y in points(chart.curves[0].path)] == [BOTTOM, (TOP + BOTTOM) / 2, TOP]
    assert [tick.label for tick in chart.y_ticks] == ["1", "10", "100"]


def test_what_cannot_be_drawn_is_a_gap_and_counted():
    values = [1.0, 2.0, math.nan, 3.0, math.inf, 0.0, 1.0, 1.0]
    chart = line_chart("t", "", range(8), {"a": values}, str, log=True)
    path = chart.curves[0].path
    assert (path.count("M"), len(points(path)), chart.undrawn) == (3, 5, 3)
    nothing = line_chart("t", "", [1], {"a": [math.nan], "b": [math.inf]}, str)
    assert (nothing.curves, nothing.undrawn) == ([], 2)


def test_a_value_that_stands_alone_is_a_dot_in_the_plot():
    for log in (False, True):
        chart = line_chart("t", "", [7], {"a": [4.0]}, str, log=log)
        ((x, y),) = points(chart.curves[0].dots)
        assert (x, TOP < y < BOTTOM) == (RIGHT, True)
    many = [1.0] * 100 + [math.nan, 2.0, math.nan] + [1.0] * 100
    (curve,) = line_chart("t", "", range(203), {"a": many}, str).curves
    assert points(curve.dots) == [(pytest.approx(LEFT + (RIGHT - LEFT) / 2, abs=0.1), TOP)]


@given(st.lists(st.floats() | st.just(math.nan), min_size=1, max_size=300), st.integers(4, 40))
def test_thinning_keeps_the_ends_and_the_extremes(values, most):
    kept = thinned(values, most)
    assert kept == sorted(set(kept)) and len(kept) <= max(most, 1)
    assert {0, len(values) - 1} <= set(kept)
    numbers = [value for value in values if not math.isnan(value)]
    if numbers:
        shown = [values[i] for i in kept if not math.isnan(values[i])]
        assert (min(shown), max(shown)) == (min(numbers), max(numbers))


@given(
    st.floats(1e-9, 1e9), st.floats(1e-6, 1e6), st.booleans()
)  # lowest value, span relative to it
def test_ticks_are_round_few_and_inside(low, span, log):
    high = low * (1 + span)
    ticks = round_numbers(low, high, log=log)
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    slack = 1e-6 * (high - low)
    assert low - slack <= ticks[0] and ticks[-1] <= high + slack


@pytest.mark.parametrize(
    "value, shown",
    [
        (0, "0"), (0.0025, "0.0025"), (800, "800"), (1500, "1,500"), (25_000, "25k"), (2_500_000, "2.5M"),
        (3e9, "3B"),
    ],
)  # fmt: skip
def test_short_numbers(value, shown):
    assert short(value) == shown


@pytest.mark.parametrize(
    "last, labels",
    [
        (15_000, ["0", "5k", "10k", "15k"]),
        (1_600_000, ["0", "0.5M", "1M", "1.5M"]),
        (4_000, ["0", "1,000", "2,000", "3,000", "4,000"]),
    ],
)
def test_an_axis_has_one_unit(last, labels):
    chart = line_chart("t", "", [0, last], {"a": [1.0, 2.0]}, str)
    assert [tick.label for tick in chart.x_ticks][: len(labels)] == labels


def test_figures_are_those_of_the_best_model():
    rows = [row(10, dev=perplexity(300.0), best=True), row(20, dev=perplexity(200.0), best=True)]
    rows.append(row(30, dev=perplexity(250.0)))
    text = Page(report(rows, config(name="mini", licence="CC0 1.0"))).text
    assert "Held-out perplexity 200.0 forward 199.0, backward 201.0" in text
    assert "Without <UNK> targets 210.0 25.0% of 1,234 targets are <UNK>" in text
    assert "Training words 3,000 3.00 epochs, 30 of 40 steps" in text
    assert "Minutes 0.1 of training steps, 1,000 words/s" in text
    assert "licence CC0 1.0" in text
    # By hand: bytes 261 x 4; convolutions 4 x 4 + 4 and 4 x 12 + 4; highway 2 x (8 x 8 + 8); projection 8 x 4 + 4;
    # per direction gates (4 + 4) x 32 + 32 and projection 8 x 4; head 20 x 4 + 20.
    network = 1044 + 20 + 52 + 144 + 36 + 2 * (288 + 32)
    assert f"parameters {network:,}, and 100 in the head" in text
    assert "dim 8" in text and "max_steps 40" in text and "dedup none" in text


def test_text_of_the_user_is_text():
    page = report([row(1)], config(name="<script>alert(1)</script>", sources=["<b>a</b>", "b & c"]))
    parsed = Page(page)
    assert not {tag for tag, _ in parsed.tags} & {"script", "b"} - {"b"} and "<b>a" not in page
    assert '["<b>a</b>", "b & c"]' in parsed.text
    # Nothing is fetched, and nothing runs.
    names = {name for _, attributes in parsed.tags for name in attributes}
    assert not names & {"src", "href", "onload", "onclick", "style"}
    assert "http" not in page and "url(" not in page and "@import" not in page


@pytest.mark.parametrize(
    "rows",
    [
        [row(1)],
        [row(1, dev=perplexity(9.0), best=True)],
        [row(1, loss=math.nan, grad_norm=math.inf, dev=perplexity(math.inf))],
        [row(step, steps=0, grad_norm=0.0) for step in range(1, 5000)],
    ],
)
def test_any_run_has_a_page(rows):
    page = report(rows, config())
    parsed = Page(page)
    assert sum(tag == "figure" for tag, _ in parsed.tags) == 6
    assert not re.search(r"[\"' ](nan|inf)[\"' ]", " ".join(str(a) for _, a in parsed.tags))
    assert sum(tag == "rect" for tag, _ in parsed.tags) <= 5 * MAX_POINTS


def test_the_page_of_a_run_follows_its_log(tmp_path, make_run_config, corpus):
    """The page is written from the files only, so that of a resumed run equals that of an uninterrupted one."""
    settings, out = make_run_config(), tmp_path / "run"
    prepare_run_folder(out, settings)
    first = next(p for p in train(settings, corpus, out) if p.dev is not None)
    page = Page(write_report(out).read_text("utf8")).text
    assert f"{first.epoch:.2f} epochs, 10 of 20 steps" in page
    assert f"forward {first.dev.forward:,.1f}, backward {first.dev.backward:,.1f}" in page
    for _ in train(settings, corpus, out, resume=True):
        pass
    rows = log_of(out)
    assert [each["step"] for each in rows] == [5, 10, 15, 20]
    assert write_report(out).read_text("utf8") == report(rows, settings)
    assert not list(out.glob(".*.partial"))
