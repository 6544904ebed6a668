"""What an operator may do to a device as it stands, and what each act will do."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.console.selectors import DeviceRow
from tts.models import DeviceCommandKind
from tts.states import DeviceState

MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Act:
    """`consequence` is said before the act, `harsh` acts cost somebody something."""

    kind: DeviceCommandKind
    icon: str
    consequence: str | Promise
    harsh: bool = False

    @property
    def label(self) -> str | Promise:
        return self.kind.label


ACTS = {
    act.kind: act
    for act in (
        Act(
            DeviceCommandKind.DRAIN,
            "pause",
            _(
                "It gets nothing new. What waits for it goes to other devices at once; what it speaks now is "
                "spoken to the end. Then it rests until somebody resumes it, also after a restart of its host."
            ),
        ),
        Act(DeviceCommandKind.RESUME, "play", _("It takes work again as soon as its engine is warm.")),
        Act(
            DeviceCommandKind.RESTART_AFTER_JOB,
            "retry",
            _("Each worker speaks its segment to the end, ends, and is started anew with a fresh engine."),
        ),
        Act(
            DeviceCommandKind.RESTART_NOW,
            "retry",
            _(
                "Its workers are killed at once. What they speak is lost and spoken again from the beginning; "
                "nobody pays for what was lost."
            ),
            harsh=True,
        ),
        Act(
            DeviceCommandKind.QUARANTINE,
            "shield",
            _(
                "It gets nothing new until somebody releases it. What waits for it goes to other devices at once; "
                "what it speaks now ends by itself."
            ),
            harsh=True,
        ),
        Act(
            DeviceCommandKind.RELEASE,
            "check",
            _(
                "It brings up a fresh engine, which speaks a test sentence first. Only when that passes does it take "
                "work again."
            ),
        ),
        Act(
            DeviceCommandKind.SWAP_MODEL,
            "settings",
            _(
                "The new engine is warmed up beside the old one and takes over between two segments; no request "
                "fails. If it does not start, the old one goes on."
            ),
        ),
    )
}
_RESTARTS = (DeviceCommandKind.RESTART_AFTER_JOB, DeviceCommandKind.RESTART_NOW)
OFFERED: dict[str, tuple[DeviceCommandKind, ...]] = {
    DeviceState.STARTING: (
        DeviceCommandKind.DRAIN,
        DeviceCommandKind.RESTART_NOW,
        DeviceCommandKind.QUARANTINE,
    ),
    DeviceState.READY: (
        DeviceCommandKind.DRAIN,
        *_RESTARTS,
        DeviceCommandKind.SWAP_MODEL,
        DeviceCommandKind.QUARANTINE,
    ),
    DeviceState.BUSY: (
        DeviceCommandKind.DRAIN,
        *_RESTARTS,
        DeviceCommandKind.SWAP_MODEL,
        DeviceCommandKind.QUARANTINE,
    ),
    DeviceState.DRAINING: (
        DeviceCommandKind.RESUME,
        DeviceCommandKind.RESTART_NOW,
        DeviceCommandKind.QUARANTINE,
    ),
    DeviceState.STOPPED: (DeviceCommandKind.RESUME,),
    DeviceState.QUARANTINED: (DeviceCommandKind.RELEASE,),
}


def acts_offered(row: DeviceRow) -> list[Act]:
    """The acts that make sense in the device's state; none while its node is silent: nobody would carry them out."""
    if row.silent:
        return []
    kinds = OFFERED[row.state]
    if row.state == DeviceState.STOPPED and not row.drained:
        kinds = ()
    if row.drained:
        kinds = tuple(kind for kind in kinds if kind != DeviceCommandKind.DRAIN)
    if not other_engines(row):
        kinds = tuple(kind for kind in kinds if kind != DeviceCommandKind.SWAP_MODEL)
    return [ACTS[kind] for kind in kinds]


def other_engines(row: DeviceRow) -> list[tuple[str, str]]:
    """The engines that its node has, but for the one that it runs."""
    return [(key, name) for key, name in row.engines.items() if key != row.engine]


def reason_field() -> forms.CharField:
    return forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON_CHARACTERS,
        help_text=_("Goes into the audit log. No customer’s words, please."),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class DeviceActForm(forms.Form):
    """Why, and for a swap to which engine. `epoch` is the incarnation that the operator saw."""

    reason = reason_field()
    epoch = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self, *arguments: object, row: DeviceRow, kind: DeviceCommandKind, **keywords: object
    ) -> None:
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]
        if kind == DeviceCommandKind.SWAP_MODEL:
            self.fields["engine"] = forms.ChoiceField(label=_("Engine"), choices=other_engines(row))
            self.order_fields(["engine", "reason", "epoch"])
