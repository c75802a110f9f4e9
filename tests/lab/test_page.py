"""A figure as a page in a real browser: it draws, shows tooltips, and requests nothing."""

import pytest

from spacy_elmo.lab.figures import save_figure
from spacy_elmo.lab.layers.layer_chart import layer_chart
from spacy_elmo.lab.layers.layer_weights import LayerWeights
from tests.browser import Page


def test_layers(browser, tmp_path):
    mixes = [
        ("ner input", LayerWeights("ner", "input", "mix", [0.2, 0.3, 0.5], 1.5)),
        ("tagger", LayerWeights("tagger", "", "top", [0.0, 0.0, 1.0], 1.0)),
    ]
    save_figure(layer_chart(mixes), tmp_path / "layers.html", title="Layers")
    page = Page(browser, (tmp_path / "layers.html").as_uri(), "#figure svg")
    for words in ("ner input (γ 1.50)", "tagger (γ 1.00, layers = top: not learned)", "0.30"):
        assert words in page.text("#figure svg")
    bars = page.find(".mark-rect.role-mark path[aria-roledescription=bar]")
    # In units of the drawing: 420 is a weight of 1.
    widths = sorted(bar.size["width"] for bar in bars)
    assert widths == pytest.approx([0, 0, 84, 126, 210, 420], abs=2)
    longest = max(bars, key=lambda bar: bar.size["width"])
    tooltip = page.point_at(longest)
    assert "tagger" in tooltip.text and "1.000" in tooltip.text
    assert page.requests() == [page.url]
    assert page.complaints() == []


def test_a_page_cannot_request_anything(browser, tmp_path):
    """The browser refuses every request, whatever the chart contains."""
    spec = {
        "data": {"url": "http://localhost:9/data.json"},
        "mark": "point",
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    save_figure(spec, tmp_path / "page.html", title="t")
    page = Page(browser, (tmp_path / "page.html").as_uri(), "#figure svg")
    page.wait(lambda: any("Content Security Policy" in message for message in page.complaints()))
