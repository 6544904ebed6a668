"""What the chart of usage can count."""

from __future__ import annotations

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from billing.selectors.usage import Sums
from portal.charts import number_text
from portal.lib.display import money_text
from portal.lib.money import MICROS_PER_UNIT

MS_PER_SECOND = 1000
MS_PER_MINUTE = 60_000


class Measure(models.TextChoices):
    CHARGED = "charged", _("Charged")
    GPU = "gpu", _("GPU seconds")
    AUDIO = "audio", _("Minutes of audio")
    CHARACTERS = "characters", _("Characters")


UNITS: dict[Measure, str | Promise] = {
    Measure.CHARGED: _("charged by day and class of device, before what was given back"),
    Measure.GPU: _("GPU seconds that are charged for, by day and class of device"),
    Measure.AUDIO: _("minutes of audio, by day and class of device"),
    Measure.CHARACTERS: _("characters, by day and class of device"),
}


def value_of(measure: Measure, sums: Sums) -> float:
    """The sums as one number, in the unit that people think in."""
    return {
        Measure.CHARGED: sums.charged_micros / MICROS_PER_UNIT,
        Measure.GPU: sums.gpu_ms / MS_PER_SECOND,
        Measure.AUDIO: sums.audio_ms / MS_PER_MINUTE,
        Measure.CHARACTERS: float(sums.characters),
    }[measure]


def text_of(measure: Measure, value: float, currency: str) -> str:
    """The number with its unit."""
    if measure == Measure.CHARGED:
        return money_text(round(value * MICROS_PER_UNIT), currency)
    number = number_text(value)
    if measure == Measure.GPU:
        return _("%(number)s GPU s") % {"number": number}
    if measure == Measure.AUDIO:
        return _("%(number)s min") % {"number": number}
    return _("%(number)s characters") % {"number": number}
