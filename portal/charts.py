"""Charts as the server draws them: paths in a box of 1000 by 100 that stretches, with their words beside it in HTML.

Whoever makes one says in its title what it shows. Values stand in the columns (for the pointer and the keyboard) and
in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext

WIDTH: Final = 1000
HEIGHT: Final = 100
X_LABELS: Final = 5

Value = float | None
Words = str | Promise
# An instant, or a day of somebody's calendar, which is the same day for every reader.
Moment = datetime | date
Kind = Literal["lines", "bars"]


@dataclass(frozen=True)
class Series:
    """One line or one part of the bars. `tone` names its look: a colour and a dash, in charts.css."""

    label: Words
    tone: str
    values: Sequence[Value]


@dataclass(frozen=True)
class Drawn:
    label: Words
    tone: str
    path: str


@dataclass(frozen=True)
class Column:
    """The strip of the drawing that belongs to one moment, and what stands there in words."""

    x: str
    width: str
    moment: Moment
    text: str


@dataclass(frozen=True)
class Chart:
    """`unit` says what the vertical axis counts; `y_labels` from the top down; `x_labels` evenly from left to right."""

    id: str
    title: str
    unit: Words
    kind: Kind
    series: list[Drawn]
    columns: list[Column]
    y_labels: list[str]
    x_labels: list[Moment]
    moments: Sequence[Moment]
    table: list[tuple[Moment, list[str]]]
    csv_address: str = ""
    day_axis: bool = False
    names: list[Words] = field(default_factory=list)
    values: list[Sequence[Value]] = field(default_factory=list)

    @property
    def by_date(self) -> bool:
        """Whether its moments are days of a calendar."""
        return bool(self.moments) and not isinstance(self.moments[0], datetime)

    @property
    def is_empty(self) -> bool:
        return not any(drawn.path for drawn in self.series)

    def numbers(self) -> Iterator[tuple[Moment, list[float | None]]]:
        """Each moment with its values, as they were before they were written for people."""
        for index, moment in enumerate(self.moments):
            yield moment, [None if (value := one[index]) is None else round(value, 6) for one in self.values]

    @property
    def parts(self) -> list[str]:
        """The ids of what changes when the page is refreshed; the open table stays open."""
        return [f"{self.id}-title", f"{self.id}-drawing", f"{self.id}-table"]


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 … that is not below the value; 1 for nothing."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def number_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def percent_text(value: float) -> str:
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %"


def seconds_axis(value: float) -> str:
    return gettext("%(seconds)s s") % {"seconds": number_text(value)}


def _place(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")


def _height(value: float, top: float) -> float:
    return HEIGHT - min(value, top) / top * HEIGHT


def _line(values: Sequence[Value], top: float) -> str:
    """A path through the values at the middle of their columns; a gap where there is none."""
    step = WIDTH / max(1, len(values))
    path = []
    for index, value in enumerate(values):
        if value is None:
            continue
        x, y = (index + 0.5) * step, _place(_height(value, top))
        after = values[index + 1] if index + 1 < len(values) else None
        if index and values[index - 1] is not None:
            path.append(f"L{_place(x)} {y}")
        elif after is not None:
            path.append(f"M{_place(x)} {y}")
        else:
            # A lone value: a point would leave hardly a mark.
            path.append(f"M{_place(x - step * 0.3)} {y}h{_place(step * 0.6)}")
    return "".join(path)


def _bars(lower: Sequence[float], upper: Sequence[float], top: float) -> str:
    step = WIDTH / max(1, len(upper))
    width = _place(step * 0.84)
    path = []
    for index, (bottom, head) in enumerate(zip(lower, upper, strict=True)):
        if head > bottom:
            x, y, base = index * step + step * 0.08, _height(head, top), _height(bottom, top)
            path.append(f"M{_place(x)} {_place(y)}h{width}V{_place(base)}h-{width}z")
    return "".join(path)


def _columns(
    moments: Sequence[Moment], series: Sequence[Series], value_text: Callable[[float], str]
) -> list[Column]:
    step = WIDTH / max(1, len(moments))
    found = []
    for index, moment in enumerate(moments):
        said = [
            f"{one.label} {value_text(value)}" for one in series if (value := one.values[index]) is not None
        ]
        text = ", ".join(said) or gettext("no figures")
        found.append(Column(_place(index * step), _place(step), moment, text))
    return found


def _spread(moments: Sequence[Moment]) -> list[Moment]:
    """Some moments with about equal distances, the first one first. Of instants the last one is the axis's end; a day
    is named under its own column, so the last one is the last day."""
    if len(moments) < 2:
        return list(moments)
    first, second, last = moments[0], moments[1], moments[-1]
    if isinstance(first, datetime) and isinstance(second, datetime) and isinstance(last, datetime):
        length = last - first + (second - first)
        return [first + length * index / (X_LABELS - 1) for index in range(X_LABELS)]
    labels = min(X_LABELS, len(moments))
    return [moments[round(index * (len(moments) - 1) / (labels - 1))] for index in range(labels)]


def _drawn(kind: Kind, series: Sequence[Series], top: float | None) -> tuple[list[Drawn], float]:
    """Each series as a path, and the axis's upper end: `top`, else the next round number above all values."""
    floor = [0.0] * max((len(one.values) for one in series), default=0)
    spans: list[tuple[list[float], list[float]]] = []
    for one in series:
        # Bars stand on those before them, lines all on the axis.
        lower = spans[-1][1] if kind == "bars" and spans else floor
        spans.append((lower, [low + (value or 0.0) for low, value in zip(lower, one.values, strict=True)]))
    top = top or nice_ceiling(max((head for _, upper in spans for head in upper), default=0.0))
    drawn = [
        Drawn(one.label, one.tone, _bars(lower, upper, top) if kind == "bars" else _line(one.values, top))
        for one, (lower, upper) in zip(series, spans, strict=True)
    ]
    return drawn, top


def draw_chart(
    *,
    kind: Kind,
    chart_id: str,
    title: str,
    unit: Words,
    moments: Sequence[Moment],
    series: Sequence[Series],
    value_text: Callable[[float], str] = number_text,
    top: float | None = None,
    csv_address: str = "",
    day_axis: bool = False,
) -> Chart:
    """A chart over evenly spaced moments; `top` is the axis's upper end, else the next round number."""
    drawn, top = _drawn(kind, series, top)
    cells = [["–" if value is None else value_text(value) for value in one.values] for one in series]
    return Chart(
        id=chart_id,
        title=title,
        unit=unit,
        kind=kind,
        series=drawn,
        columns=_columns(moments, series, value_text),
        y_labels=[value_text(top), value_text(top / 2), value_text(0.0)],
        x_labels=_spread(moments),
        moments=moments,
        table=[(moment, [column[index] for column in cells]) for index, moment in enumerate(moments)],
        csv_address=csv_address,
        day_axis=day_axis,
        names=[one.label for one in series],
        values=[one.values for one in series],
    )


# Lines, each from the axis; bars of one moment each, the series on top of one another.
line_chart = partial(draw_chart, kind="lines")
bar_chart = partial(draw_chart, kind="bars")
