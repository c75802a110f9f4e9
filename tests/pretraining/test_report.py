"""The report of a run shows the values of the log; its page needs no other file and runs no script."""

import math
import re
from html.parser import HTMLParser

import pytest

from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.report import report
from tests.pretraining.conftest import MODEL


def row(step, **fields):
    return {
        "step": step, "total_steps": 40, "epoch": step / 10, "tokens": 100 * step, "loss": 5.0, "learn_rate": 0.001,
        "grad_norm": 0.5, "tokens_per_second": 1000.0, "minutes": step / 600, "dev": None, "best": False, **fields,
    }  # fmt: skip


def perplexity(mean):
    return {
        "forward": mean / 2, "backward": mean * 2, "mean": mean, "targets": 1234, "unk_share": 0.25,
        "forward_known": mean + 9, "backward_known": mean + 11, "mean_known": mean + 10, "vocab_size": 20,
    }  # fmt: skip


def config(**card):
    model = {**MODEL, "layers": 1}
    return PretrainConfig.read({"model": model, "training": {"max_steps": 40}, "card": card})


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
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def test_the_best_model_the_table_and_the_curve():
    rows = [
        row(10, dev=perplexity(400.0), best=True),
        row(20, dev=perplexity(200.0), best=True),
        row(25),
    ]
    rows.append(row(30, dev=perplexity(100 * math.sqrt(8))))
    page = Page(report(rows, config(name="mini", licence="CC0 1.0")))
    assert (
        "Best held-out perplexity 200.0: forward 100.0, backward 400.0; full softmax over 20"
        in page.text
    )
    assert "Without <UNK> targets 210.0; 25.0% of 1,234 targets are <UNK>" in page.text
    assert "Training words 3,000; 3.00 epochs, 30 of 40 steps Minutes 0.1" in page.text
    # By hand: bytes 261 x 4; convolutions 4 x 4 + 4 and 4 x 12 + 4; highway 2 x (8 x 8 + 8); projection 8 x 4 + 4;
    # per direction gates (4 + 4) x 32 + 32 and projection 8 x 4; head 20 x 4 + 20.
    network = 1044 + 20 + 52 + 144 + 36 + 2 * (288 + 32)
    assert f"Parameters {network:,}, and 100 in the head" in page.text
    assert "licence CC0 1.0" in page.text and "dim 8" in page.text
    assert "10 1.00 1,000 5.000 400.0 200.0 800.0 0.001 0.5 1,000 20 2.00" in page.text
    # From 800 at the top to 100 at the bottom: a third of the height for each factor of 2.
    curves = [attributes["points"] for tag, attributes in page.tags if tag == "polyline"]
    assert curves == ["245.3,143.3 442.7,210.0 640.0,176.7", "245.3,10.0 442.7,76.7 640.0,43.3"]


def test_text_of_the_user_is_text():
    page = report([row(1)], config(name="<script>alert(1)</script>", sources=["<b>a</b>", "b & c"]))
    parsed = Page(page)
    assert not {tag for tag, _ in parsed.tags} & {"script", "b"}
    assert '["<b>a</b>", "b & c"]' in parsed.text
    # Nothing is fetched, and nothing runs.
    names = {name for _, attributes in parsed.tags for name in attributes}
    assert not names & {"src", "href", "onload", "onclick", "style"}
    assert "http" not in page and "url(" not in page and "@import" not in page


@pytest.mark.parametrize(
    "rows",
    [
        [row(1)],
        [row(0, loss=None, dev=perplexity(9.0), best=True)],
        [row(1, loss=math.nan, grad_norm=math.inf, dev=perplexity(math.inf))],
    ],
)
def test_any_run_has_a_page(rows):
    page = Page(report(rows, config()))
    assert not re.search("nan|inf", " ".join(a.get("points", "") for _, a in page.tags))
