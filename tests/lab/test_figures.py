"""Charts are written as pictures."""

import struct

import pytest

from spacy_elmo.lab.figures import save_figure


def test_png(tmp_path):
    chart = {
        "data": {"values": [{"x": "a"}]}, "mark": "bar", "width": 100, "height": 50,
        "encoding": {"x": {"field": "x", "type": "nominal", "axis": None}},
    }  # fmt: skip
    save_figure(chart, tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    # Two dots per unit, and a margin of five units.
    assert struct.unpack(">II", data[16:24]) == pytest.approx((220, 120), abs=4)
