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
    "customer.suspend": _("Customer suspended"),
    "customer.unsuspend": _("Suspension ended"),
    "customer.credit": _("Credit added"),
    "customer.debit": _("Credit taken back"),
    "customer.credit_limit": _("Credit limit set"),
    "customer.plan": _("Plan changed"),
    "customer.payment": _("Payment recorded"),
    "payment.refund": _("Payment refunded"),
    "vouchers.add": _("Vouchers made"),
    "vouchers.void": _("Vouchers withdrawn"),
    "price.add": _("New price"),
    "model.share": _("Share of a model on trial"),
    "plan.add": _("New version of a plan"),
    "plan.move": _("Moved to a version of a plan"),
    "workspace.output": _("Delivery of audio changed by its workspace"),
    "books.reconcile": _("Books reconciled"),
    "books.explain": _("Difference explained"),
}
# What is asked for and not done yet.
ASKED_LABELS: Final[dict[str, str | Promise]] = {
    "customer.credit": _("Add credit"),
    "customer.debit": _("Take credit back"),
    "customer.credit_limit": _("Set the credit limit"),
    "customer.payment": _("Record a payment"),
    "vouchers.add": _("Make vouchers"),
    "job.refund": _("Refund"),
    "payment.refund": _("Refund the payment"),
}
# What becomes of an act that needs a second operator, before it is done.
PENDING: Final[dict[str, str | Promise]] = {"asked": _("asked for"), "declined": _("declined")}
STATES: Final = {"device": DeviceState, "job": JobState}


def act_label(act: str) -> str:
    """`Drain`, or `Drain: done` for what came of it."""
    if act in ACT_LABELS:
        return str(ACT_LABELS[act])
    asked, _dot, outcome = act.rpartition(".")
    if asked in ACT_LABELS and outcome in DeviceCommandState.values:
        return f"{ACT_LABELS[asked]}: {DeviceCommandState(outcome).label}"
    if asked in ACT_LABELS and outcome in PENDING:
        return f"{ACT_LABELS[asked]}: {PENDING[outcome]}"
    return act


def asked_label(act: str) -> str:
    """What an act is called before it is done."""
    return str(ASKED_LABELS.get(act, act))


def _money(micros: object) -> str:
    # Of the job's own currency, which stands on its page.
    return f"{micros_as_decimal(micros):f}" if isinstance(micros, int) else str(micros)


def _plain(value: object) -> str:
    return "–" if value in (None, "") else str(value)


def _yes_no(value: object) -> str:
    return gettext("yes") if value else gettext("no")


FIELDS: Final[dict[str, tuple[str | Promise, Callable[[Any], str]]]] = {
    "engine": (_("Engine"), _plain),
    "epoch": (_("Epoch"), _plain),
    "command_id": (_("Command"), _plain),
    "result": (_("Result"), _plain),
    "charged_micros": (_("Charged"), _money),
    "refunded_micros": (_("Refunded"), _money),
    "amount_micros": (_("Amount"), _money),
    "available_micros": (_("Available"), _money),
    "credit_limit_micros": (_("Credit limit"), _money),
    "suspended": (_("Suspended"), _yes_no),
    "plan": (_("Plan"), _plain),
    "number": (_("Number"), _plain),
    "workspaces": (_("Workspaces"), _plain),
    "day": (_("Day"), _plain),
    "vouchers": (_("Vouchers"), _plain),
    "expires_at": (_("Until"), _plain),
    "credit_days": (_("Days that the credit lasts"), _plain),
    "differences": (_("Differences"), _plain),
    "effective_at": (_("In force from"), _plain),
    "interactive_gpu_second_micros": (_("Interactive, a GPU-second"), _money),
    "standard_gpu_second_micros": (_("Standard, a GPU-second"), _money),
    "batch_gpu_second_micros": (_("Batch, a GPU-second"), _money),
    "minimum_charge_micros": (_("Minimum charge"), _money),
    "monthly_fee_micros": (_("Monthly fee"), _money),
    "included_gpu_seconds": (_("Included GPU-seconds"), _plain),
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
