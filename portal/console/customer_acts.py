"""What an operator may do to a customer as it stands, and what each act will do."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

from django import forms
from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.models import User, Workspace
from accounts.services.audit import record_act
from accounts.services.workspaces import suspend_workspace, unsuspend_workspace
from billing.models import PlanVersion
from billing.selectors.plans import current_subscription
from billing.services.plans import subscribe
from portal.console import money_acts
from portal.console.money_acts import OBJECT_KIND
from portal.console.money_fields import AmountForm, CreditLimitForm, MicrosField, MoneyActForm
from portal.console.plan_rows import versions_in_force
from portal.lib.errors import Conflict

SUSPEND: Final = "suspend"
UNSUSPEND: Final = "unsuspend"
PAYMENT: Final = "payment"
PLAN: Final = "plan"


class PaymentForm(MoneyActForm):
    """Money that arrived: how, how much, by which name, and for what."""

    more = ("provider", "reference")

    provider = forms.ChoiceField(
        label=_("How it came"), choices=[("bank_transfer", _("Bank transfer")), ("cash", _("Cash"))]
    )
    amount = MicrosField(label=_("Amount"))
    reference = forms.CharField(
        label=_("Reference"),
        max_length=120,
        help_text=_("The bank’s for the transfer, or the receipt’s number. Each is recorded once."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    field_order = ("provider", "amount", "reference", "reason")


class PlanForm(MoneyActForm):
    version = forms.ChoiceField(label=_("Plan"))

    def __init__(self, *arguments: object, **keywords: object) -> None:
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]
        self.fields["version"].choices = [  # type: ignore[attr-defined]
            (version.pk, f"{version.plan.name} (#{version.number})") for version in versions_in_force()
        ]
        self.order_fields(["version", "reason"])


@dataclass(frozen=True)
class CustomerAct:
    """`consequence` is said before the act, `harsh` acts cost somebody something. `money`: the act's name in
    portal.console.money_acts, empty for one that moves none."""

    slug: str
    label: str | Promise
    icon: str
    consequence: str | Promise
    form: type[MoneyActForm] = MoneyActForm
    harsh: bool = False
    money: str = ""


ACTS: Final = {
    act.slug: act
    for act in (
        CustomerAct(
            "credit",
            _("Add credit"),
            "plus",
            _(
                "The amount is given as promotional credit that does not expire. "
                "What the customer owes is paid by it first."
            ),
            form=AmountForm,
            money=money_acts.CREDIT,
        ),
        CustomerAct(
            "debit",
            _("Take credit back"),
            "billing",
            _("The amount is taken from what is available, never more than that."),
            form=AmountForm,
            harsh=True,
            money=money_acts.DEBIT,
        ),
        CustomerAct(
            "credit-limit",
            _("Set the credit limit"),
            "edit",
            _(
                "The balance may go so far below zero: the customer pays later. What is owed already stays owed."
            ),
            form=CreditLimitForm,
            money=money_acts.CREDIT_LIMIT,
        ),
        CustomerAct(
            PAYMENT,
            _("Record a payment"),
            "billing",
            _("The amount is booked as paid credit at once. What the customer owes is paid by it first."),
            form=PaymentForm,
            money=money_acts.RECORDED_PAYMENT,
        ),
        CustomerAct(
            PLAN,
            _("Change the plan"),
            "workspace",
            _("The plan holds from now on, with its limits. The month’s fees are reckoned by days."),
            form=PlanForm,
        ),
        CustomerAct(
            SUSPEND,
            _("Suspend"),
            "pause",
            _(
                "Nobody of this customer can submit anything, and its keys are refused. What is queued already is "
                "spoken to the end. Nothing is deleted."
            ),
            harsh=True,
        ),
        CustomerAct(
            UNSUSPEND, _("End the suspension"), "play", _("Its people and keys can work again at once.")
        ),
    )
}


def offered_acts(workspace: Workspace) -> list[CustomerAct]:
    """The acts that make sense for the customer as it stands."""
    unfitting = SUSPEND if workspace.suspended_at is not None else UNSUSPEND
    return [act for act in ACTS.values() if act.slug != unfitting]


def _record(
    workspace: Workspace,
    actor: User,
    act: str,
    reason: str,
    *,
    before: dict[str, object],
    after: dict[str, object],
) -> None:
    record_act(
        actor=actor,
        act=act,
        object_kind=OBJECT_KIND,
        object_id=workspace.pk,
        object_name=workspace.name,
        reason=reason,
        before=before,
        after=after,
    )


@transaction.atomic
def suspend(*, workspace: Workspace, actor: User, reason: str) -> None:
    """Refuse the customer's people and keys from now on. Raises Conflict: it is suspended."""
    if not suspend_workspace(workspace_id=workspace.pk):
        raise Conflict
    _record(
        workspace, actor, "customer.suspend", reason, before={"suspended": False}, after={"suspended": True}
    )


@transaction.atomic
def unsuspend(*, workspace: Workspace, actor: User, reason: str) -> None:
    """Let the customer work again. Raises Conflict: it is not suspended."""
    if not unsuspend_workspace(workspace_id=workspace.pk):
        raise Conflict
    _record(
        workspace, actor, "customer.unsuspend", reason, before={"suspended": True}, after={"suspended": False}
    )


@transaction.atomic
def change_plan(*, workspace: Workspace, version_id: str, actor: User, reason: str) -> None:
    """Put the customer on a version of a plan from now on. Locks the credit account.

    Raises:
        Conflict: it is on that version. PlanNotInForce: the version is not in force yet.
    """
    version = PlanVersion.objects.select_related("plan").get(pk=version_id)
    before = current_subscription(workspace.pk)
    if before is not None and before.plan_version_id == version.pk:
        raise Conflict
    subscribe(workspace_id=workspace.pk, plan_version=version)
    _record(
        workspace,
        actor,
        "customer.plan",
        reason,
        before={"plan": _plan_name(before.plan_version) if before is not None else ""},
        after={"plan": _plan_name(version)},
    )


def _plan_name(version: PlanVersion) -> str:
    return f"{version.plan.code} #{version.number}"


def money_act(*, act: CustomerAct, workspace_id: uuid.UUID, form: MoneyActForm) -> money_acts.MoneyAct:
    """What the filled form asks for."""
    return money_acts.MoneyAct(
        id=form.cleaned_data["key"],
        act=act.money,
        workspace_id=workspace_id,
        amount_micros=form.cleaned_data["amount"],
        reason=form.cleaned_data["reason"],
        details={name: form.cleaned_data[name] for name in form.more},
    )
