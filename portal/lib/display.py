"""How numbers are written for people: money, durations, counts. Pure, by the language that is active."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from django.utils.translation import get_language, gettext, ngettext

from portal.lib.money import micros_as_decimal

MS_PER_SECOND = 1000
MS_PER_MINUTE = 60_000
MS_PER_HOUR = 3_600_000
MICRO_PLACES = 6

# A currency's own sign at home, and the sign that tells it apart abroad (CLDR's narrow and standard forms).
_SIGNS = {
    "CNY": {"zh": "¥", "": "CN¥"},
    "USD": {"zh": "US$", "": "$"},
    "EUR": {"": "€"},
    "GBP": {"": "£"},
    "HKD": {"": "HK$"},
    "JPY": {"zh": "JP¥", "": "¥"},
}
NO_BREAK_SPACE = "\u00a0"
# Each language in its own words: who looks for it may not read the other.
LANGUAGE_NAMES = {"zh-hans": "简体中文", "en": "English"}


def count_text(number: int) -> str:
    """`950`, `200,000`: a whole number with its thousands set apart.

    Chinese and English write it alike. Django's own figures for zh-hans are not asked: they set apart ten thousands.
    """
    return f"{number:,}"


def currency_sign(currency: str) -> str:
    """What stands before an amount, e.g. `¥`; the code and a space for a currency without a sign here."""
    signs = _SIGNS.get(currency)
    if signs is None:
        return currency + NO_BREAK_SPACE
    language = (get_language() or "").partition("-")[0]
    return signs.get(language, signs[""])


def _places(amount: Decimal) -> int:
    """Two decimals from one unit up; below it as many as show three figures, six at most."""
    if amount == 0 or abs(amount) >= 1:
        return 2
    return min(MICRO_PLACES, max(2, 3 - amount.adjusted() - 1))


def _write(amount: Decimal, currency: str, places: int) -> str:
    sign = "−" if amount < 0 else ""
    digits = f"{abs(amount):,.{places}f}"
    whole, _, fraction = digits.partition(".")
    return f"{sign}{currency_sign(currency)}{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def money_text(amount_micros: int, currency: str) -> str:
    """An amount as people read it: `¥12.34`, `¥0.0123`. Rounded for the eye, half up; receipts use `money_exact`."""
    amount = micros_as_decimal(amount_micros)
    places = _places(amount)
    return _write(amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP), currency, places)


def balance_text(amount_micros: int, currency: str) -> str:
    """A balance: rounded down to the cent, so that it never shows more than there is."""
    cents = micros_as_decimal(amount_micros).quantize(Decimal("0.01"), rounding=ROUND_DOWN)
    return _write(cents, currency, 2)


def money_exact(amount_micros: int, currency: str) -> str:
    """An amount to the last micro, without needless zeros: lines of a receipt add up as written."""
    return _write(micros_as_decimal(amount_micros), currency, MICRO_PLACES)


def seconds_text(duration_ms: int) -> str:
    """`0.84 s`, `12.3 s`, `2 min 05 s`, `1 h 02 min`: three figures, never more precise than it is useful."""
    if duration_ms < MS_PER_SECOND:
        return gettext("%(seconds)s s") % {"seconds": f"{duration_ms / MS_PER_SECOND:.2f}"}
    # 59.96 s would be written as 60.0 s.
    if duration_ms < MS_PER_MINUTE - 50:
        return gettext("%(seconds)s s") % {"seconds": f"{duration_ms / MS_PER_SECOND:.1f}"}
    seconds = (duration_ms + 500) // MS_PER_SECOND
    if seconds < MS_PER_HOUR // MS_PER_SECOND:
        return gettext("%(minutes)d min %(seconds)02d s") % {
            "minutes": seconds // 60,
            "seconds": seconds % 60,
        }
    minutes = seconds // 60
    return gettext("%(hours)d h %(minutes)02d min") % {"hours": minutes // 60, "minutes": minutes % 60}


def clock_text(duration_ms: int) -> str:
    """A place in a recording: `0:07`, `12:34`, `1:02:03`. Rounded down, as players do."""
    seconds = duration_ms // MS_PER_SECOND
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def minutes_text(duration_ms: int) -> str:
    """`less than a minute`, `5 minutes`, `1,250 minutes`: rounded down, for what a balance buys."""
    minutes = duration_ms // MS_PER_MINUTE
    if minutes < 1:
        return gettext("less than a minute")
    return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": count_text(minutes)}


def wait_text(duration_ms: int) -> str:
    """An estimate of a wait, coarse on purpose: `a few seconds`, `about 40 s`, `about 3 min`, `about 2 h`."""
    seconds = duration_ms // MS_PER_SECOND
    if seconds < 10:
        return gettext("a few seconds")
    if seconds < 90:
        return gettext("about %(seconds)d s") % {"seconds": (seconds + 5) // 10 * 10}
    if seconds < 90 * 60:
        return gettext("about %(minutes)d min") % {"minutes": (seconds + 30) // 60}
    return gettext("about %(hours)d h") % {"hours": (seconds + 1800) // 3600}


def bytes_text(size_bytes: int) -> str:
    """`512 B`, `1.5 MB`, `2.0 GB`: powers of 1000, as file managers and browsers show them."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f}{NO_BREAK_SPACE}{unit}" if unit == "B" else f"{size:.1f}{NO_BREAK_SPACE}{unit}"
        size /= 1000
    return f"{size:.1f}{NO_BREAK_SPACE}TB"
