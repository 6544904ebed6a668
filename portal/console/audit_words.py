"""The audit log in words: acts, and what they changed. What is not known is shown as it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.lib.money import micros_as_decimal
from tts.models import DeviceCommandKind, DeviceCommandState
from tts.states import DeviceState, JobState

# By the object's kind; a device's acts follow from its commands.
ACT_LABELS: Final[dict[str, str | Promise]] = {
    **{f"device.{kind.value}": kind.label for kind in DeviceCommandKind},
    "job.cancel": _("Job canceled"),
    "job.refund": _("Job refunded"),
}
STATES: Final = {"device": DeviceState, "job": JobState}


def act_label(act: str) -> str:
    """`Drain`, or `Drain: done` for what came of it."""
    if act in ACT_LABELS:
        return str(ACT_LABELS[act])
    asked, _dot, outcome = act.rpartition(".")
    if asked in ACT_LABELS and outcome in DeviceCommandState.values:
        return f"{ACT_LABELS[asked]}: {DeviceCommandState(outcome).label}"
    return act


def _money(micros: object) -> str:
    # Of the job's own currency, which stands on its page.
    return f"{micros_as_decimal(micros):f}" if isinstance(micros, int) else str(micros)


def _plain(value: object) -> str:
    return "–" if value in (None, "") else str(value)


FIELDS: Final[dict[str, tuple[str | Promise, Callable[[Any], str]]]] = {
    "engine": (_("Engine"), _plain),
    "epoch": (_("Epoch"), _plain),
    "command_id": (_("Command"), _plain),
    "result": (_("Result"), _plain),
    "charged_micros": (_("Charged"), _money),
    "refunded_micros": (_("Refunded"), _money),
}


def change_words(values: dict[str, Any], *, object_kind: str) -> list[tuple[str, str]]:
    """Names and values of what an act changed, in its order."""
    return [_said(name, value, object_kind) for name, value in values.items()]


def _said(name: str, value: Any, object_kind: str) -> tuple[str, str]:
    states = STATES.get(object_kind)
    if name == "state" and states is not None and value in states.values:
        return gettext("State"), str(states(value).label)
    if name in FIELDS:
        label, write = FIELDS[name]
        return str(label), write(value)
    return (gettext("State") if name == "state" else name), _plain(value)
