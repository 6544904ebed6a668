"""Vouchers in batches: making them, whose codes are shown once, and withdrawing what nobody redeemed."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.services.audit import record_act
from billing.models import VoucherBatch
from billing.services.vouchers import MOST_AT_ONCE, create_batch, void_batch
from portal.console.money_fields import MicrosField, MoneyActForm
from portal.lib.clock import now
from portal.lib.errors import Conflict, NotFound
from portal.lib.uniqueness import is_duplicate
from portal.logs.filters import MomentField

OBJECT_KIND: Final = "voucher_batch"
HIGHEST_DAYS: Final = 3650


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


@transaction.atomic
def _make(values: dict[str, Any], currency: str, actor: User) -> tuple[VoucherBatch, list[str]]:
    batch, codes = create_batch(
        batch_id=values["key"],
        name=values["name"],
        amount_micros=values["amount"],
        currency=currency,
        count=values["count"],
        expires_at=values["expires_at"],
        credit_days=values["credit_days"],
        created_by_id=actor.pk,
    )
    after: dict[str, Any] = {"amount_micros": batch.amount_micros, "vouchers": len(codes)}
    if batch.expires_at is not None:
        after["expires_at"] = batch.expires_at.isoformat(timespec="seconds")
    if batch.credit_days is not None:
        after["credit_days"] = batch.credit_days
    _record(batch, actor, "vouchers.add", values["reason"], after)
    return batch, codes


def make_for_operator(*, form: BatchForm, currency: str, actor: User) -> tuple[VoucherBatch, list[str]]:
    """Make the vouchers that the filled form asks for, and return the batch with its codes, this once.

    Raises:
        Conflict: this form was sent before. Nothing was changed.
        AmountTooPrecise, AmountOutOfRange, VoucherBatchInvalid
    """
    try:
        return _make(form.cleaned_data, currency, actor)
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        raise Conflict from error


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
        object_kind=OBJECT_KIND,
        object_id=batch.pk,
        object_name=batch.name,
        reason=reason,
        after=after,
    )
