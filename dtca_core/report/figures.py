"""Figures as inline SVG: dots with intervals, and curves over updates.

Each is one string of well-formed XML with the same bytes for the same values. Colours are CSS
classes of the page that holds it, so that light and dark are one figure. There is no
interaction but the tooltip of a dot.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import ceil, floor, log10

Number = float | int
"""JSON and callers have both; the type checker of the tests tells them apart."""
Point = tuple[Number, Number]

WIDTH = 400
"""Of every figure, in units that are pixels where there is room: text stays readable at 320."""
MAX_POINTS = 400
_CHARACTER = 6.8  # width of a wide one at the font size of the figures
_MAX_LABEL = 22
_LINE = 16
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear map from values to places in the figure."""

    low: Number
    """Value at `start`."""
    high: Number
    """Value at `end`; above `low`."""
    start: Number
    end: Number

    def __call__(self, value: Number) -> float:
        """Return the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value with its interval."""

    value: Number
    low: Number | None = None
    """Lower end of the interval; None where it is unknown."""
    high: Number | None = None
    """Upper end, likewise."""
    is_hollow: bool = False
    """Drawn as an outline."""


@dataclass(frozen=True, kw_only=True)
class DotRow:
    """One row of a dot plot."""

    label: str
    marks: Sequence[Mark]
    """One a series, in the order of the legend."""
    note: str = ""
    """Text at the end of the row."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One curve."""

    name: str
    points: Sequence[Point]
    """(update, value), by update; all finite."""
    is_smoothed: bool = True
    """Drawn faint, with its running mean over it; otherwise as dots on a line."""


def printable(text: str) -> str:
    """Return the text with control characters, and what UTF-8 cannot hold, as U+FFFD."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def tick_step(span: Number, about: int) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that divides a span in `about`."""
    needed = span / about
    power = 10.0 ** floor(log10(needed))
    # Rounding must not push a span of exactly `about` steps to the next step.
    return next(k * power for k in (1, 2, 5, 10) if k * power >= needed * (1 - 1e-9))


def ticks_over(low: Number, high: Number, about: int = 4) -> list[float]:
    """Return round numbers that begin at or below `low` and end at or above `high`.

    Values that are all equal get a span of their own size, so that a flat line has an axis.
    """
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(low) / 2 or 1.0
        low, high = (low - room, high + room) if low else (0.0, room)
    step = tick_step(high - low, about)
    return _multiples(step, floor(low / step + 1e-9), ceil(high / step - 1e-9))


def ticks_within(low: Number, high: Number, about: int = 4) -> list[float]:
    """Return round whole numbers from `low` to `high`, which is above it."""
    step = max(1.0, tick_step(high - low, about))
    return _multiples(step, ceil(low / step - 1e-9), floor(high / step + 1e-9))


def format_tick(value: Number, step: Number) -> str:
    """Return a tick's label, with the decimals that its step needs."""
    form = f",.{_decimals(step)}f" if 1e-4 <= step < 1e7 else ".6g"
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def thin(points: Sequence[Point], limit: int = MAX_POINTS) -> list[Point]:
    """Return at most `limit` points: the first, the last, and each stretch's extremes.

    Extremes, because a spike is what one looks for in a raw line. `limit` is at least 4.
    """
    if len(points) <= limit:
        return list(points)
    stretches = limit // 2 - 1
    kept = {0, len(points) - 1}
    for k in range(stretches):
        stretch = range(k * len(points) // stretches, (k + 1) * len(points) // stretches)
        kept.add(min(stretch, key=lambda i: points[i][1]))
        kept.add(max(stretch, key=lambda i: points[i][1]))
    return [points[i] for i in sorted(kept)]


def running_mean(points: Sequence[Point], reach: int) -> list[Point]:
    """Return at each point the mean of it and of up to `reach` points to either side."""
    sums = [0.0, *accumulate(value for _, value in points)]
    means: list[Point] = []
    for i, (update, _) in enumerate(points):
        begin, end = max(0, i - reach), min(len(points), i + reach + 1)
        means.append((update, (sums[end] - sums[begin]) / (end - begin)))
    return means


def smoothing_reach(num_points: int) -> int:
    """Return how far to either side the running mean of a curve reaches; 0 for a short one."""
    return num_points // 16 or int(num_points >= 8)


def dot_plot(
    rows: Sequence[DotRow],
    *,
    names: Sequence[str],
    unit: str,
    title: str,
    hollow_name: str = "",
    note_title: str = "",
) -> str:
    """Return a figure of one row per thing and one dot per series, with intervals.

    Args:
        rows: top to bottom.
        names: of the series, one or two, for the legend.
        unit: what the horizontal axis measures.
        title: what the figure is, for those who do not see it.
        hollow_name: what a hollow dot means; empty where there is none.
        note_title: over the notes at the ends of the rows.
    """
    marks = [mark for row in rows for mark in row.marks]
    if not marks:
        return _empty(title)
    num_series = max(len(row.marks) for row in rows)
    samples = [(name, _marker(9, 0, k)) for k, name in enumerate(names)]
    if hollow_name:
        samples.append((hollow_name, _marker(9, 0, 0, is_hollow=True)))
    legend, top = _legend(samples)
    top += _LINE if note_title else 4
    left = 20 + _CHARACTER * max(len(_shortened(row.label)) for row in rows)
    right = WIDTH - 14 - _CHARACTER * max(len(row.note) for row in rows)
    height = 14 + 12 * num_series
    bottom = top + height * len(rows)
    ticks = ticks_over(*_extent(marks), about=6)
    scale = Scale(low=ticks[0], high=ticks[-1], start=left, end=right)
    parts = [
        *legend,
        *_horizontal_axis(scale, ticks, top, bottom, unit),
        *([_text(WIDTH - 2, top - 5, note_title, "tick end")] if note_title else []),
    ]
    for k, row in enumerate(rows):
        parts += _dot_row(row, scale, top + height * k, height)
    described = "; ".join(_describe_row(row, names) for row in rows)
    return _svg(bottom + 36, f"{title}. {described}.", parts)


def curve_panel(series: Sequence[Series], *, extent: Point, unit: str, title: str) -> str:
    """Return a figure of curves over updates.

    A curve skips updates without a value.

    Args:
        series: the first two are told apart by colour and dash.
        extent: first and last update of the axis, which all panels of a page share.
        unit: what the vertical axis measures.
        title: what the figure is, for those who do not see it.
    """
    values = [value for one in series for _, value in one.points]
    if not values:
        return _empty(title)
    legend, top = _legend(
        [(one.name, _line(0, 0, 18, 0, f"s{k} curve")) for k, one in enumerate(series)]
    )
    top += _LINE + 8
    bottom = top + 140
    ticks = ticks_over(min(values), max(values))
    labels = [format_tick(tick, ticks[1] - ticks[0]) for tick in ticks]
    left, right = 12 + _CHARACTER * max(map(len, labels)), WIDTH - 14
    first, last = extent if extent[0] < extent[1] else (extent[0] - 0.5, extent[0] + 0.5)
    x = Scale(low=first, high=last, start=left, end=right)
    y = Scale(low=ticks[0], high=ticks[-1], start=bottom, end=top)
    parts = [*legend, _text(0, top - 12, unit, "tick")]
    for tick, label in zip(ticks, labels, strict=True):
        kind = "zero" if tick == 0 else "grid"
        parts.append(_line(left, y(tick), right, y(tick), kind))
        parts.append(_text(left - 6, y(tick) + 4, label, "tick end"))
    x_ticks = ticks_within(first, last)
    parts += _horizontal_axis(x, x_ticks, bottom, bottom + 4, "update")
    for k, one in enumerate(series):
        parts += _curve(one, x, y, f"s{k}")
    described = "; ".join(_describe_series(one) for one in series if one.points)
    return _svg(bottom + 40, f"{title}, {unit}. {described}.", parts)


def _multiples(step: Number, first: int, last: int) -> list[float]:
    # Rounded, because 3 * 0.1 is not 0.3; and never -0.0.
    return [round(k * step, _decimals(step)) + 0.0 for k in range(first, last + 1)]


def _decimals(step: Number) -> int:
    return max(0, -floor(log10(step)))


def _extent(marks: Sequence[Mark]) -> Point:
    ends = [end for mark in marks for end in (mark.low, mark.value, mark.high) if end is not None]
    return min(ends), max(ends)


def _horizontal_axis(
    scale: Scale, ticks: Sequence[float], top: Number, bottom: Number, unit: str
) -> list[str]:
    """Return lines from top to bottom with labels below them, and the unit below those."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    parts: list[str] = []
    for tick in ticks:
        parts.append(_line(scale(tick), top, scale(tick), bottom, "grid"))
        parts.append(_text(scale(tick), bottom + 15, format_tick(tick, step), "tick middle"))
    parts.append(_line(scale.start, bottom, scale.end, bottom, "axis"))
    parts.append(_text((scale.start + scale.end) / 2, bottom + 31, unit, "tick middle"))
    return parts


def _dot_row(row: DotRow, scale: Scale, top: Number, height: Number) -> list[str]:
    middle = top + height / 2
    parts = [
        _text(scale.start - 8, middle + 4, _shortened(row.label), "label end"),
        _text(WIDTH - 2, middle + 4, row.note, "label end"),
    ]
    for k, mark in enumerate(row.marks):
        y = middle + 12 * (k - (len(row.marks) - 1) / 2)
        said = f"{mark.value:.4g}"
        if mark.low is not None and mark.high is not None:
            low, high = scale(mark.low), scale(mark.high)
            said += f" ({mark.low:.4g} to {mark.high:.4g})"
            parts.append(_line(low, y, high, y, f"s{k} whisker"))
            parts += [_line(end, y - 3, end, y + 3, f"s{k} whisker") for end in (low, high)]
        parts.append(_marker(scale(mark.value), y, k, is_hollow=mark.is_hollow, said=said))
    return parts


def _marker(x: Number, y: Number, k: int, *, is_hollow: bool = False, said: str = "") -> str:
    """Return the dot of series k, a disc or a diamond, so that colour is not all there is."""
    kind = f"s{k} hollow" if is_hollow else f"s{k} dot"
    if k == 0:
        return _disc(x, y, 4.5, kind, said)
    places = " ".join(
        f"{_number(x + dx)},{_number(y + dy)}" for dx, dy in ((0, -6), (6, 0), (0, 6), (-6, 0))
    )
    return f'<polygon class="{kind}" points="{places}">{_tooltip(said)}</polygon>'


def _curve(series: Series, x: Scale, y: Scale, kind: str) -> list[str]:
    reach = smoothing_reach(len(series.points)) if series.is_smoothed else 0
    raw = thin(series.points)
    parts = [_polyline(raw, x, y, f"{kind} raw" if reach else f"{kind} curve")]
    if reach:
        parts.append(_polyline(thin(running_mean(series.points, reach)), x, y, f"{kind} curve"))
    elif len(raw) <= 60:
        parts += [
            _disc(x(update), y(value), 3, f"{kind} dot", f"update {update:.0f}: {value:.4g}")
            for update, value in raw
        ]
    return parts


def _polyline(points: Sequence[Point], x: Scale, y: Scale, kind: str) -> str:
    places = " ".join(f"{_number(x(update))},{_number(y(value))}" for update, value in points)
    return f'<polyline class="{kind}" points="{places}"/>'


def _legend(items: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """Return a legend of names and samples, which wraps, and the height it takes."""
    parts: list[str] = []
    x, y = 0.0, 11
    for name, sample in items:
        width = 24 + _CHARACTER * len(name) + 12
        if x and x + width > WIDTH:
            x, y = 0.0, y + _LINE
        parts.append(f'<g transform="translate({_number(x)} {y - 4})">{sample}</g>')
        parts.append(_text(x + 24, y, name, "label"))
        x += width
    return parts, y + 8


def _describe_row(row: DotRow, names: Sequence[str]) -> str:
    said = ", ".join(
        f"{name} {mark.value:.4g}".strip() for name, mark in zip(names, row.marks, strict=False)
    )
    return f"{row.label}: {said}"


def _describe_series(series: Series) -> str:
    (first, begin), (last, end) = series.points[0], series.points[-1]
    change = " to ".join(
        f"{value:.4g} at update {update:.0f}"
        for update, value in ((first, begin), (last, end))[: len(series.points)]
    )
    return f"{series.name}: {change}"


def _empty(title: str) -> str:
    return _svg(48, f"{title}. No values.", [_text(WIDTH / 2, 28, "no values", "tick middle")])


def _svg(height: Number, described: str, parts: Sequence[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {_number(height)}" '
        f'role="img" aria-label="{_escaped(described)}">\n{body}\n</svg>'
    )


def _text(x: Number, y: Number, text: str, kind: str) -> str:
    if not text:
        return ""
    return f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}">{_escaped(text)}</text>'


def _line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> str:
    places = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    return f'<line class="{kind}" ' + " ".join(f'{k}="{_number(v)}"' for k, v in places) + "/>"


def _disc(x: Number, y: Number, radius: Number, kind: str, said: str) -> str:
    place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
    return f'<circle class="{kind}" {place}>{_tooltip(said)}</circle>'


def _tooltip(said: str) -> str:
    return f"<title>{_escaped(said)}</title>" if said else ""


def _shortened(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else label[: _MAX_LABEL - 1] + "…"


def _escaped(text: str) -> str:
    return escape(printable(text))


def _number(value: Number) -> str:
    # Hundredths of a pixel are enough, and the same on every machine.
    return f"{value:.2f}".rstrip("0").rstrip(".")
