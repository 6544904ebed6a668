"""The chart of a time's usage: a bar for each day, in parts by class of device."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Final

from django.utils.translation import gettext as _

from billing.selectors.usage import Dimension, Sums
from billing.selectors.usage_days import Usage
from portal.charts import Chart, Series, bar_chart
from portal.money.measures import UNITS, Measure, text_of, value_of
from portal.money.names import device_class_name
from portal.money.usage_files import ordered
from portal.templatetags.charts import long_date

# The last one is for all classes that have none of their own.
TONES: Final = ("accent", "live", "warn", "idle")


def usage_chart(
    usage: Usage, *, days: list[date], measure: Measure, currency: str, csv_address: str
) -> Chart:
    """The dearest classes first, from the axis up; beyond four, the rest together."""
    classes = [
        str(key) for key, _sums in ordered(Dimension.DEVICE_CLASS, usage.parts[Dimension.DEVICE_CLASS])
    ]
    groups = [[name] for name in classes]
    labels = [device_class_name(name) for name in classes]
    if len(classes) > len(TONES):
        groups = [*groups[: len(TONES) - 1], classes[len(TONES) - 1 :]]
        labels = [*labels[: len(TONES) - 1], _("others")]
    found = usage.by_day_and_device_class
    series = [
        Series(
            label,
            tone,
            [sum(value_of(measure, found.get((day, name), Sums())) for name in group) for day in days],
        )
        for label, tone, group in zip(labels, TONES, groups, strict=False)
    ]
    return bar_chart(
        chart_id="usage",
        title=_finding(usage, measure, currency),
        unit=UNITS[measure],
        moments=days,
        series=series,
        value_text=partial(_text, measure, currency),
        csv_address=csv_address,
    )


def _text(measure: Measure, currency: str, value: float) -> str:
    return text_of(measure, value, currency)


def _finding(usage: Usage, measure: Measure, currency: str) -> str:
    """What the chart shows, in a sentence."""
    total = value_of(measure, usage.total)
    if not total:
        return _("Nothing was used in this time")
    most_day, most = max(usage.parts[Dimension.DAY].items(), key=lambda item: value_of(measure, item[1]))
    values = {
        "total": text_of(measure, total, currency),
        "most": text_of(measure, value_of(measure, most), currency),
        "day": long_date(most_day) if isinstance(most_day, date) else "",
    }
    if measure == Measure.CHARGED:
        return _("%(total)s charged, most on %(day)s: %(most)s") % values
    return _("%(total)s, most on %(day)s: %(most)s") % values
