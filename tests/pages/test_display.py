"""Numbers written for people, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation import override

from portal.lib import display
from portal.templatetags import ui


@pytest.mark.parametrize(
    ("amount_micros", "text"),
    [
        (0, "¥0.00"),
        (1, "¥0.000001"),
        (12, "¥0.000012"),
        (12_345, "¥0.0123"),
        (12_300, "¥0.0123"),
        (123_456, "¥0.123"),
        (500_000, "¥0.50"),
        (999_999, "¥1.00"),
        (1_000_000, "¥1.00"),
        (1_234_567_890, "¥1,234.57"),
        (-2_500_000, "−¥2.50"),
    ],
)
def test_money_is_written_for_the_eye(amount_micros: int, text: str) -> None:
    with override("zh-hans"):
        assert display.money_text(amount_micros, "CNY") == text


def test_a_currency_has_its_own_sign_at_home_and_another_abroad() -> None:
    with override("zh-hans"):
        assert display.money_text(1_500_000, "CNY") == "¥1.50"
        assert display.money_text(1_500_000, "USD") == "US$1.50"
    with override("en"):
        assert display.money_text(1_500_000, "CNY") == "CN¥1.50"
        assert display.money_text(1_500_000, "USD") == "$1.50"
        assert display.money_text(1_500_000, "CHF") == "CHF\u00a01.50"


def test_a_balance_never_shows_more_than_there_is() -> None:
    with override("en"):
        assert display.balance_text(3_599_999, "CNY") == "CN¥3.59"
        assert display.balance_text(9_999, "CNY") == "CN¥0.00"


def test_a_receipt_shows_every_micro() -> None:
    with override("en"):
        assert display.money_exact(123_456_789, "CNY") == "CN¥123.456789"
        assert display.money_exact(7_000_000, "CNY") == "CN¥7.00"


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0.00 s"),
        (840, "0.84 s"),
        (999, "1.00 s"),
        (12_340, "12.3 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min 00 s"),
        (125_400, "2 min 05 s"),
        (3_599_999, "1 h 00 min"),
        (3_720_000, "1 h 02 min"),
    ],
)
def test_durations_have_three_figures(duration_ms: int, text: str) -> None:
    with override("en"):
        assert display.seconds_text(duration_ms) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(0, "0:00"), (7_999, "0:07"), (754_000, "12:34"), (3_723_000, "1:02:03")]
)
def test_a_place_in_a_recording_is_rounded_down(duration_ms: int, text: str) -> None:
    assert display.clock_text(duration_ms) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (59_999, "less than a minute"),
        (60_000, "1 minute"),
        (119_999, "1 minute"),
        (75_000_000, "1,250 minutes"),
    ],
)
def test_minutes_of_a_balance_are_rounded_down(duration_ms: int, text: str) -> None:
    with override("en"):
        assert display.minutes_text(duration_ms) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (9_999, "a few seconds"),
        (12_000, "about 10 s"),
        (47_000, "about 50 s"),
        (89_999, "about 90 s"),
        (95_000, "about 2 min"),
        (5_399_000, "about 90 min"),
        (7_300_000, "about 2 h"),
    ],
)
def test_waits_are_coarse(duration_ms: int, text: str) -> None:
    with override("en"):
        assert display.wait_text(duration_ms) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (15_000_000, "15.0 MB"), (2 * 10**12, "2.0 TB")],
)
def test_sizes_are_in_powers_of_a_thousand(size_bytes: int, text: str) -> None:
    assert display.bytes_text(size_bytes) == text.replace(" ", "\u00a0")


def test_a_moment_is_dated_as_each_language_does_and_names_its_zone() -> None:
    moment_at = datetime(2026, 5, 3, 14, 5, tzinfo=UTC)
    with override("en"):
        assert ui.moment(moment_at) == (
            '<time datetime="2026-05-03T14:05:00+00:00" data-local="moment">3 May 2026, 14:05 UTC</time>'
        )
        assert ">3 May 2026<" in ui.day(moment_at)
    with override("zh-hans"):
        assert ">2026年5月3日 14:05 UTC<" in ui.moment(moment_at)
        assert ">2026年5月3日<" in ui.day(moment_at)
    assert ui.moment(None) == ""


def test_a_time_alone_follows_the_reader_as_the_date_beside_it_does() -> None:
    moment_at = datetime(2026, 5, 3, 14, 5, 9, tzinfo=UTC)
    assert ui.time_of_day(moment_at) == (
        '<time datetime="2026-05-03T14:05:09+00:00" data-local="clock">14:05:09 UTC</time>'
    )


def test_no_page_writes_a_time_that_stays_in_the_servers_zone() -> None:
    pages = Path(settings.BASE_DIR, "templates").rglob("*.html")
    bare = [path.name for path in pages if "|time:" in path.read_text(encoding="utf-8")]
    assert bare == []


def test_a_badge_has_a_word_and_a_shape() -> None:
    drawn = ui.badge("failed", "<Failed>")
    assert 'class="badge badge--bad"' in drawn
    assert "<svg" in drawn
    assert "&lt;Failed&gt;" in drawn


def test_every_tone_has_a_shape_of_its_own() -> None:
    drawings = {tone: str(ui.icon(name)) for tone, name in ui.TONE_ICONS.items()}
    assert set(ui.TONES.values()) <= set(drawings)
    assert len(set(drawings.values())) == len(drawings)


def test_an_icon_is_silent_unless_it_is_named() -> None:
    assert 'aria-hidden="true"' in ui.icon("check")
    assert 'role="img" aria-label="Done &amp; paid"' in ui.icon("check", "", "Done & paid")


def test_a_waveform_has_a_bar_for_each_peak_and_bounds_them() -> None:
    drawn = str(ui.waveform([0, 50, 300, -5]))
    assert drawn.count("M") == 4
    assert 'viewBox="0 0 11 100"' in drawn
    assert "M3 25h2v50h-2z" in drawn
    assert "M6 0h2v100h-2z" in drawn
