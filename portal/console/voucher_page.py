"""Vouchers in batches: making them, whose codes are shown once, and withdrawing what nobody redeemed."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.services.audit import record_act
from billing.models import VoucherBatch
from billing.services import pending_acts
from billing.services.vouchers import MOST_AT_ONCE, check_batch, create_batch, void_batch
from portal.console import money_acts
from portal.console.money_act import BATCH_KIND, VOUCHERS, MoneyAct
from portal.console.money_fields import MicrosField, MoneyActForm
from portal.lib.clock import now
from portal.lib.errors import Conflict, NotFound
from portal.logs.filters import MomentField

HIGHEST_DAYS: Final = 3650
# A batch with its codes, which nobody can read again.
Made = tuple[VoucherBatch, list[str]]


class BatchForm(MoneyActForm):
    name = forms.CharField(
        label=_("Name"), max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    amount = MicrosField(label=_("Amount of each"))
    count = forms.IntegerField(label=_("How many"), min_value=1, max_value=MOST_AT_ONCE)
    expires_at = MomentField(
        label=_("Can be redeemed until"),
        required=False,
        help_text=_("By the server’s clock. Empty: without end."),
    )
    credit_days = forms.IntegerField(
        label=_("Days that the credit lasts"),
        min_value=1,
        max_value=HIGHEST_DAYS,
        required=False,
        help_text=_("Once it is redeemed. Empty: without end."),
    )

    field_order = ("name", "amount", "count", "expires_at", "credit_days", "reason")

    def clean_expires_at(self) -> datetime | None:
        moment: datetime | None = self.cleaned_data["expires_at"]
        if moment is not None and moment <= now():
            raise ValidationError(gettext("That has passed."))
        return moment


def find_batch(batch_id: uuid.UUID) -> VoucherBatch:
    """Raises NotFound."""
    batch = VoucherBatch.objects.filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    return batch


def _act(form: BatchForm, currency: str) -> MoneyAct:
    """What the filled form asks for: what all the vouchers are worth together."""
    values = form.cleaned_data
    expires_at: datetime | None = values["expires_at"]
    return MoneyAct(
        id=values["key"],
        act=VOUCHERS,
        workspace_id=None,
        amount_micros=values["amount"] * values["count"],
        reason=values["reason"],
        details={
            "name": values["name"],
            "each_micros": values["amount"],
            "currency": currency,
            "count": values["count"],
            "expires_at": expires_at.isoformat() if expires_at is not None else None,
            "credit_days": values["credit_days"],
        },
    )


def _batch_values(act: MoneyAct) -> dict[str, Any]:
    """What `create_batch` and `check_batch` take both."""
    expires_at = act.details["expires_at"]
    return {
        "amount_micros": act.details["each_micros"],
        "currency": act.details["currency"],
        "count": act.details["count"],
        "expires_at": datetime.fromisoformat(expires_at) if expires_at is not None else None,
        "credit_days": act.details["credit_days"],
    }


def _make(act: MoneyAct, actor: User) -> Made:
    batch, codes = create_batch(
        batch_id=act.id, name=act.details["name"], created_by_id=actor.pk, **_batch_values(act)
    )
    after: dict[str, Any] = {"amount_micros": batch.amount_micros, "vouchers": len(codes)}
    if batch.expires_at is not None:
        after["expires_at"] = batch.expires_at.isoformat(timespec="seconds")
    if batch.credit_days is not None:
        after["credit_days"] = batch.credit_days
    _record(batch, actor, VOUCHERS, act.reason, after)
    return batch, codes


@transaction.atomic
def make_for_operator(*, form: BatchForm, currency: str, actor: User) -> Made | None:
    """Make the vouchers that the filled form asks for, and return the batch with its codes, this once; None where
    they are more than one operator may make alone: then another one is asked, who is shown the codes.

    Raises:
        Conflict: this form was sent before. Nothing was changed.
        AmountTooPrecise, AmountOutOfRange, VoucherBatchInvalid, VoucherDatesInvalid
    """
    act = _act(form, currency)
    money_acts.lock(act, actor)
    if pending_acts.exists(act_id=act.id):
        raise Conflict
    if money_acts.needs_second(act, actor):
        check_batch(**_batch_values(act))
        money_acts.ask(act, actor)
        return None
    made = _make(act, actor)
    money_acts.note_alone(act, actor, act.amount_micros)
    return made


@transaction.atomic
def confirm_vouchers(*, act_id: uuid.UUID, actor: User) -> Made:
    """Make the vouchers that another operator asked for, and return the batch with its codes, this once.

    Raises:
        SecondOperatorNeeded: it is their own. PendingActDecided: somebody was first.
        VoucherDatesInvalid: they would have expired by now. It stays open.
    """
    return _make(money_acts.open_for(act_id=act_id, actor=actor), actor)


@transaction.atomic
def void_for_operator(*, batch: VoucherBatch, actor: User, reason: str) -> int:
    """Withdraw what nobody redeemed of a batch; returns how many. Raises Conflict: there is none."""
    voided = void_batch(batch_id=batch.pk)
    if not voided:
        raise Conflict
    _record(batch, actor, "vouchers.void", reason, {"vouchers": voided})
    return voided


def _record(batch: VoucherBatch, actor: User, act: str, reason: str, after: dict[str, Any]) -> None:
    record_act(
        actor=actor,
        act=act,
        object_kind=BATCH_KIND,
        object_id=batch.pk,
        object_name=batch.name,
        reason=reason,
        after=after,
    )
