"""A figure as a page, opened in a real browser: it draws, it shows what is pointed at, and it requests nothing."""

import json

import pytest

from spacy_elmo.analysis.contexts.map_chart import map_chart
from spacy_elmo.analysis.contexts.occurrence_map import project
from spacy_elmo.analysis.contexts.occurrences import Occurrence
from spacy_elmo.analysis.figures import save_figure
from spacy_elmo.analysis.layers.layer_chart import layer_chart
from spacy_elmo.analysis.layers.layer_weights import LayerWeights
from tests.analysis.words import occurrences

PATIENCE = 30  # seconds, on a busy machine


class Page:
    """What is seen of a page."""

    def __init__(self, browser, path):
        self.browser, self.url = browser, path.as_uri()
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get(self.url)
        self.wait(lambda: self.find("#figure svg"))

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, PATIENCE).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def words(self):
        return self.find("#figure svg")[0].get_attribute("textContent")

    def point_at(self, element):
        """The tooltip that appears."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).move_to_element(element).perform()
        return self.wait(lambda: self.find("#vg-tooltip-element.visible"))[0]

    def requests(self):
        """Addresses of all that was requested since it was opened."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")
        ]
        sent = [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("data:", "chrome:"))]

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]


def large(panels):
    """Which points are drawn large. Their areas are 70 and 300, so the widths 8.4 and 17.3."""
    return [[point.size["width"] > 12 for point in points] for points in panels]


def test_map(browser, tmp_path):
    """Pointing at an occurrence shows its sentence with the word marked, and makes it large in every panel."""
    found = [
        Occurrence("They moored at the ", "bank", " & slept.", "rivers.txt", "bank%1:17:01::"),
        Occurrence("</script><b>The</b> ", "bank", " lends.", "money.txt", "bank%1:14:00::"),
        Occurrence("A ", "bank", " closed.", "money.txt", "bank%1:14:00::"),
    ]
    corpus = occurrences(found, [[[1, 0], [0, 1], [-1, -1]], [[5, 1], [0, 3], [-1, -2]]])
    queries = occurrences([Occurrence("My ", "bank", ".", "query")], [[[1, 1]], [[1, -3]]])
    spec = map_chart(
        project(corpus, queries),
        found,
        queries.items,
        title="Occurrences of “bank”",
        source="a < b",
    )
    save_figure(spec, tmp_path / "map.html", title="Occurrences of “bank”")
    page = Page(browser, tmp_path / "map.html")

    assert browser.title == "Occurrences of “bank”"
    for words in ("view 0", "view 1", "bank%1:14:00:: (2)", "Query 1: My BANK.", "Source: a < b"):
        assert words in page.words()
    panels = [page.find(f".points_{panel}_marks path") for panel in (0, 1)]
    assert [len(points) for points in panels] == [3, 3]
    assert large(panels) == [[False] * 3] * 2

    tooltip = page.point_at(panels[0][0])
    assert tooltip.find_element("css selector", "mark").text == "bank"
    assert "They moored at the bank & slept." in tooltip.text
    assert "rivers.txt" in tooltip.text
    page.wait(lambda: large(panels) == [[True, False, False]] * 2)

    page.point_at(panels[1][1])
    page.wait(lambda: "The" in page.find("#vg-tooltip-element")[0].text)
    tooltip = page.find("#vg-tooltip-element")[0]
    assert "</script><b>The</b> bank lends." in tooltip.text
    assert not tooltip.find_elements("css selector", "b")

    assert page.requests() == [page.url]
    assert page.complaints() == []


def test_layers(browser, tmp_path):
    mixes = [
        ("ner input", LayerWeights("ner", "input", "mix", [0.2, 0.3, 0.5], 1.5)),
        ("tagger", LayerWeights("tagger", "", "top", [0.0, 0.0, 1.0], 1.0)),
    ]
    save_figure(layer_chart(mixes), tmp_path / "layers.html", title="Layers")
    page = Page(browser, tmp_path / "layers.html")
    for words in ("ner input (γ 1.50)", "tagger (γ 1.00, layers = top: not learned)", "0.30"):
        assert words in page.words()
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
    """The browser refuses, whatever a chart says."""
    spec = {
        "data": {"url": "http://localhost:9/data.json"},
        "mark": "point",
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
    }
    save_figure(spec, tmp_path / "page.html", title="t")
    page = Page(browser, tmp_path / "page.html")
    page.wait(lambda: any("Content Security Policy" in message for message in page.complaints()))
