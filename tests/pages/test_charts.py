"""Charts: paths at the right places, gaps where there is nothing, and the numbers in words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.template.loader import render_to_string

from portal.charts import (
    Chart,
    Series,
    bar_chart,
    line_chart,
    nice_ceiling,
    number_text,
    percent_text,
    seconds_axis,
)

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MOMENTS = [START + timedelta(minutes=index) for index in range(4)]


def lines(*values: float | None) -> Chart:
    return line_chart(
        chart_id="c",
        title="Title",
        unit="unit",
        moments=MOMENTS,
        series=[Series("one", "accent", values)],
        top=100,
    )


@pytest.mark.parametrize(
    ("value", "ceiling"),
    [(0, 1), (0.3, 0.5), (1, 1), (1.01, 2), (2.4, 2.5), (3, 5), (9, 10), (100, 100), (101, 200), (26.2, 50)],
)
def test_an_axis_ends_at_a_round_number_that_is_not_below_the_values(value: float, ceiling: float) -> None:
    assert nice_ceiling(value) == pytest.approx(ceiling)


def test_a_line_goes_through_the_middle_of_each_column() -> None:
    assert lines(0, 50, 100, 25).series[0].path == "M125 100L375 50L625 0L875 75"


def test_a_line_has_a_gap_where_there_is_no_value_and_a_lone_value_is_a_short_line() -> None:
    assert lines(0, None, 100, None).series[0].path == "M50 100h150M550 0h150"


def test_what_is_above_the_axis_stays_in_the_drawing() -> None:
    assert lines(250, 100, 0, 0).series[0].path.startswith("M125 0L375 0")


def test_bars_stand_on_one_another() -> None:
    chart = bar_chart(
        chart_id="c",
        title="",
        unit="",
        moments=MOMENTS[:2],
        series=[Series("low", "bad", [25, None]), Series("high", "accent", [50, 100])],
        top=100,
    )
    assert [drawn.path for drawn in chart.series] == [
        "M40 75h420V100h-420z",
        "M40 25h420V75h-420zM540 0h420V100h-420z",
    ]


def test_every_column_says_its_values_and_the_table_has_them_too() -> None:
    chart = lines(0, None, 12.5, 99.96)
    assert [column.text for column in chart.columns] == ["one 0", "no figures", "one 12.5", "one 100"]
    assert [cells for _, cells in chart.table] == [["0"], ["–"], ["12.5"], ["100"]]
    assert [values for _, values in chart.numbers()] == [[0], [None], [12.5], [99.96]]
    assert [column.moment for column in chart.columns] == MOMENTS
    assert (chart.columns[1].x, chart.columns[1].width) == ("250", "250")


def test_the_axes_are_labelled_from_end_to_end() -> None:
    chart = lines(0, 0, 0, 0)
    assert chart.y_labels == ["100", "50", "0"]
    assert chart.x_labels == [START + timedelta(minutes=index) for index in range(5)]


def test_without_values_a_chart_is_empty() -> None:
    assert lines(None, None, None, None).is_empty
    assert not lines(None, 0, None, None).is_empty
    assert line_chart(chart_id="c", title="", unit="", moments=[], series=[]).is_empty


def test_numbers_are_written_short() -> None:
    assert [number_text(value) for value in (0, 0.1234, 2.5, 1234.5, 7.0)] == [
        "0",
        "0.123",
        "2.5",
        "1,234",
        "7",
    ]
    assert [percent_text(value) for value in (0, 0.123, 9.96, 10, 99.6)] == [
        "0 %",
        "0.1 %",
        "10.0 %",
        "10 %",
        "100 %",
    ]
    assert seconds_axis(2.5) == "2.5 s"


def test_days_of_a_calendar_are_named_under_their_columns_and_moved_for_nobody() -> None:
    days = [date(2026, 11, 1) + timedelta(days=index) for index in range(30)]
    chart = bar_chart(
        chart_id="c", title="", unit="", moments=days, series=[Series("one", "accent", [1.0] * 30)]
    )
    assert chart.by_date
    assert [day.day for day in chart.x_labels] == [1, 8, 15, 23, 30]
    page = render_to_string("partials/chart.html", {"chart": chart})
    assert 'data-label="30 Nov 2026"' in page
    assert "<time" not in page
    assert not lines(0, 1, 2, 3).by_date
    assert 'data-local="minute"' in render_to_string("partials/chart.html", {"chart": lines(0, 1, 2, 3)})
