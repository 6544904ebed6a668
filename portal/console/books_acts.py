"""What operators do to the books' reconciliation: run it now, and say why a difference is none."""

from __future__ import annotations

from datetime import UTC, date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.services.audit import record_act
from billing.errors import DifferenceNotFound
from billing.models import Difference, Reconciliation
from billing.services.reconciliation import explain_difference
from portal.books import reconcile_books
from portal.console.device_acts import reason_field
from portal.lib.clock import now


def _yesterday() -> date:
    return now().astimezone(UTC).date() - timedelta(days=1)


class ReconcileForm(forms.Form):
    day = forms.DateField(
        label=_("Day"),
        help_text=_("By UTC, as the nightly run does."),
        initial=_yesterday,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
    )
    reason = reason_field()

    def clean_day(self) -> date:
        """Today's books are looked at as far as they go."""
        day: date = self.cleaned_data["day"]
        if day > now().astimezone(UTC).date():
            raise ValidationError(gettext("That day has not begun."))
        return day


class ExplainForm(forms.Form):
    reason = reason_field()


def find_difference(difference_id: int) -> Difference:
    """Raises DifferenceNotFound."""
    difference = Difference.objects.filter(pk=difference_id).first()
    if difference is None:
        raise DifferenceNotFound
    return difference


def reconcile_for_operator(*, day: date, actor: User, reason: str) -> Reconciliation:
    """Look at a day's books now, store what was found, and return the run. Call outside of a transaction."""
    run = reconcile_books(day=day)
    _record(
        actor,
        "books.reconcile",
        run.pk,
        reason,
        after={"day": day.isoformat(), "differences": run.differences},
    )
    return run


@transaction.atomic
def explain_for_operator(*, difference_id: int, actor: User, reason: str) -> None:
    """Note why a difference is none, or how it was put right. Raises DifferenceNotFound: it was explained before."""
    explain_difference(difference_id=difference_id, explanation=reason)
    difference = Difference.objects.get(pk=difference_id)
    before = {"expected": difference.expected, "actual": difference.actual}
    _record(actor, "books.explain", difference_id, reason, name=difference.check_name, before=before)


def _record(
    actor: User,
    act: str,
    object_id: int,
    reason: str,
    *,
    name: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    record_act(
        actor=actor,
        act=act,
        object_kind="books",
        object_id=object_id,
        object_name=name,
        reason=reason,
        before=before,
        after=after,
    )
