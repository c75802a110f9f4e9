"""The chart of a word's uses has colors for senses, and one scale per panel."""

import numpy as np
import pytest

from spacy_elmo.lab.contexts.occurrence_map import project
from spacy_elmo.lab.contexts.occurrences import Occurrence
from spacy_elmo.lab.explore.map_chart import map_chart
from spacy_elmo.lab.explore.word_view import word_view
from tests.lab.words import occurrences


def chart(senses, queries=()):
    found = [Occurrence("a ", "w", "", "f", sense) for sense in senses]
    corpus = occurrences(found, np.random.default_rng(0).normal(size=(2, len(found), 3)))
    asked = occurrences(queries, np.ones((2, len(queries), 3)))
    nearby = [[[], []] for _ in queries]
    view = word_view(corpus, asked, nearby, project(corpus, asked))
    return map_chart(view, asked.items, title="t", source="s")


def test_legend():
    """The seven most frequent senses have colors, the others share one color, and uses without a sense are grey."""
    senses = [name for n, name in enumerate("abcdefghi") for _ in range(10 - n)]
    points = chart([*senses, None])["concat"][0]["layer"][0]
    scale = points["encoding"]["color"]["scale"]
    names = [f"{name} ({10 - n})" for n, name in enumerate("abcdefg")]
    assert scale["domain"] == [*names, "2 other senses (5)", "no sense annotated"]
    assert len(set(scale["range"])) == 9
    drawn = [point["sense"] for point in points["data"]["values"]]
    assert drawn[0] == "a (10)" and drawn[-2:] == ["2 other senses (5)", "no sense annotated"]


def test_legend_of_fewer_senses():
    scale = chart("aab")["concat"][0]["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["a (2)", "b (1)"]
    assert len(set(scale["range"])) == 2


def test_without_senses_there_is_one_color_and_no_legend():
    panel = chart([None, None])["concat"][1]["layer"][0]
    assert "field" not in panel["encoding"]["color"]


def test_every_point_is_inside_its_panel_and_both_axes_have_one_scale():
    spec = chart("abcab", ["w"])
    assert len(spec["concat"]) == 2
    for panel in spec["concat"]:
        points, queries = panel["layer"]
        rows = [*points["data"]["values"], *queries["data"]["values"]]
        assert len(rows) == 6
        spans = {}
        for axis in "xy":
            low, high = points["encoding"][axis]["scale"]["domain"]
            spans[axis] = high - low
            assert all(low < row[axis] < high for row in rows)
        assert spans["x"] == pytest.approx(spans["y"])
