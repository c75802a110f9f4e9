"""Figures are written as files. test_page.py opens their pages in a browser."""

import re
import struct

import pytest

from spacy_elmo.lab.figures import save_figure
from spacy_elmo.lab.layers.layer_chart import layer_chart
from spacy_elmo.lab.layers.layer_weights import LayerWeights

CHART = {
    "data": {"values": [{"x": "</script><script>alert(1)</script>"}]},
    "mark": "bar",
    "width": 100,
    "height": 50,
    "encoding": {"x": {"field": "x", "type": "nominal", "axis": None}},
}


def test_png(tmp_path):
    save_figure(CHART, tmp_path / "a.png", title="t")
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    # Two dots per unit, and a margin of five units.
    assert (width, height) == pytest.approx((220, 120), abs=4)


def test_page_needs_nothing_else(tmp_path):
    save_figure(CHART, tmp_path / "a.html", title="<Title>")
    page = (tmp_path / "a.html").read_text("utf8")
    assert "<title>&lt;Title&gt;</title>" in page
    # The libraries, and the chart: what is in its data ends no script.
    assert page.count("<script") == page.count("</script>") == 2
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=|url\(|@import|https?:", outside)
    assert "default-src 'none'" in outside


@pytest.mark.parametrize("name", ["a.html", "a.png"])
def test_a_figure_is_written_whole_or_not_at_all(tmp_path, name):
    (tmp_path / name).write_text("before")
    with pytest.raises((ValueError, TypeError)):
        save_figure({"mark": {1, 2}}, tmp_path / name, title="t")
    assert (tmp_path / name).read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"a\.gif.* \.html or \.png"):
        save_figure(CHART, tmp_path / "a.gif", title="t")


def test_layer_chart():
    mixes = [
        ("b", LayerWeights("b", "", "mix", [0.2, 0.8], 1.5)),
        ("a", LayerWeights("a", "", 0, [1.0, 0.0, 0.0], 1.0)),
    ]
    spec = layer_chart(mixes)
    rows = [(row["mix"], row["layer"], row["weight"]) for row in spec["data"]["values"]]
    learnt, chosen = "b (γ 1.50)", "a (γ 1.00, layers = 0: not learned)"
    assert rows == [
        (learnt, "0", 0.2), (learnt, "1", 0.8), (chosen, "0", 1.0), (chosen, "1", 0.0), (chosen, "2", 0.0),
    ]  # fmt: skip
    assert {row["average"] for row in spec["data"]["values"]} == {1 / 2, 1 / 3}
    assert spec["facet"]["row"]["sort"] == [learnt, chosen]
