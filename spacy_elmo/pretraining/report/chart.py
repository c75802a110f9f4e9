"""Layout of a line chart. The template of the report draws the chart as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

# Sizes are in units of the drawing, which scales with the page.
WIDTH, HEIGHT = 560.0, 244.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 548.0, 22.0, 206.0
"""Edges of the plot inside the drawing."""
MAX_POINTS = 240
"""Largest number of points of a curve. With more points, the distance between neighboring points would be
less than two units of the drawing."""
_MAX_MARKED_POINTS = 40


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Curve:
    """A named line of the chart, as SVG paths."""

    name: str
    path: str
    """Attribute `d` of the SVG path of the line, which has a gap where a value cannot be drawn."""
    dots: str
    """Attribute `d` of a second SVG path, which marks isolated points, or all points if there are few."""


@dataclass(frozen=True)
class HoverStripe:
    """A vertical stripe of the plot, and the text that is shown while the pointer is in this stripe."""

    left: float
    width: float
    at: float
    """The x position of the point that the text describes."""
    text: str


@dataclass(frozen=True)
class Chart:
    """The parts of a line chart. The chart has no curves if no value can be drawn."""

    title: str
    unit: str
    curves: list[Curve]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    stripes: list[HoverStripe]
    undrawn: int
    """Number of values that cannot be drawn: infinite values, nan and, on a logarithmic scale, values that
    are not positive."""


def line_chart(
    title: str,
    unit: str,
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    describe: Callable[[int], str],
    *,
    log: bool = False,
    from_zero: bool = False,
) -> Chart:
    """Return the layout of curves over a common x axis, which begins at 0.

    Args:
        x: x values of the points, in ascending order.
        curves: {name of a curve: the y values of the curve, one for each value of `x`}.
        describe: function that takes the index of a point and returns a text about the values at this point.
        log: True for a logarithmic y axis.
        from_zero: True for a y axis that begins at 0.
    """
    drawable = {
        name: [value if _drawable(value, log) else math.nan for value in values]
        for name, values in curves.items()
    }
    drawn = [value for values in drawable.values() for value in values if not math.isnan(value)]
    undrawn = len(x) * len(curves) - len(drawn)
    if not drawn:
        return Chart(title, unit, [], [], [], [], undrawn)
    across = _Axis(0.0, x[-1], LEFT, RIGHT)
    up = _Axis(0.0 if from_zero else min(drawn), max(drawn), BOTTOM, TOP, log=log)
    kept = thinned(next(iter(drawable.values())), MAX_POINTS)
    positions = [across(x[point]) for point in kept]
    return Chart(
        title=title,
        unit=unit,
        curves=[
            _curve(name, positions, [up(values[point]) for point in kept])
            for name, values in drawable.items()
        ],
        x_ticks=across.ticks(),
        y_ticks=up.ticks(),
        stripes=_stripes(positions, [describe(point) for point in kept]),
        undrawn=undrawn,
    )


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Return the indices of at most `most` points that keep the shape of a line.

    The line is divided into equal intervals. The result contains the lowest and the highest point of each
    interval, and the first and the last point of the line. So a spike of a single point is kept.

    Args:
        values: values of the line. NaN is never the lowest or highest.
        most: largest number of indices, at least 4.
    """
    if len(values) <= most:
        return list(range(len(values)))
    intervals = (most - 2) // 2
    kept = {0, len(values) - 1}
    for number in range(intervals):
        first, end = (len(values) * edge // intervals for edge in (number, number + 1))
        drawn = [i for i in range(first, end) if not math.isnan(values[i])] or [first]
        kept |= {min(drawn, key=values.__getitem__), max(drawn, key=values.__getitem__)}
    return sorted(kept)


def round_numbers(low: float, high: float, *, log: bool = False) -> list[float]:
    """Return three to eight round numbers from `low` to `high`, for the ticks of an axis. `low` must be less
    than `high`. If `log` is true, `low` must be positive."""
    if log:
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1,), (1, 2, 5), range(1, 10)):
            ticks = [digit * 10.0**exponent for exponent in exponents for digit in digits]
            ticks = [tick for tick in ticks if low <= tick <= high]
            if len(ticks) >= 3:
                return ticks[:: math.ceil(len(ticks) / 8)]
    # The step is the smallest that gives few enough ticks, and is 1, 2 or 5 times a power of ten.
    power = 10.0 ** math.floor(math.log10((high - low) / 8))
    step = next(power * digit for digit in (1, 2, 5, 10, 20) if (high - low) / (power * digit) <= 7)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float, beside: float | None = None) -> str:
    """Return a number as the label of a tick, such as 0.003, 800, 25k or 1.5M.

    Args:
        beside: maximum of the axis. The maximum determines the unit (k, M or B) of all labels of the axis.
            For example, 500,000 becomes 0.5M if the maximum is 1.5M.
    """
    largest = abs(value if beside is None else beside)
    for least, unit, letter in ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if largest >= least:
            return f"{value / unit:.4g}{letter}" if value else "0"
    return f"{value:,.4g}"


class _Axis:
    """Mapping from values to positions between `start` and `end` in the drawing."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False):
        if low == high:  # a single value is drawn in the middle
            low, high = (
                (low / 2, high * 2) if log else (low - (abs(low) or 1), high + (abs(high) or 1))
            )
        self._low, self._high, self._start, self._end, self._log = low, high, start, end, log

    def __call__(self, value: float) -> float:
        low, high = self._low, self._high
        if self._log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self._start + (self._end - self._start) * (value - low) / (high - low)

    def ticks(self) -> list[Tick]:
        numbers = round_numbers(self._low, self._high, log=self._log)
        # On a logarithmic axis, the smallest number would have too many zeros in the unit of the largest.
        largest = None if self._log else max(map(abs, numbers))
        return [Tick(self(number), short(number, largest)) for number in numbers]


def _drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _curve(name: str, x: Sequence[float], y: Sequence[float]) -> Curve:
    pieces: list[list[str]] = [[]]
    for place, height in zip(x, y, strict=True):
        if not math.isnan(height):
            pieces[-1].append(f"{place:.1f} {height:.1f}")
        elif pieces[-1]:
            pieces.append([])
    mark_all = len(x) <= _MAX_MARKED_POINTS
    # "h0" is a line of length 0, which is a dot, because its ends are round.
    dots = [f"M{point}h0" for piece in pieces for point in piece if mark_all or len(piece) == 1]
    return Curve(name, "".join("M" + "L".join(piece) for piece in pieces if piece), "".join(dots))


def _stripes(positions: Sequence[float], texts: Sequence[str]) -> list[HoverStripe]:
    """Return a stripe with a text for each x position, with borders halfway between neighboring positions."""
    borders = [LEFT, *((a + b) / 2 for a, b in zip(positions, positions[1:], strict=False)), RIGHT]
    return [
        HoverStripe(left, right - left, at, text)
        for left, right, at, text in zip(borders, borders[1:], positions, texts, strict=False)
    ]
