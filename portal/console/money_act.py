"""An operator's act on money as it was asked for: what, to whom, how much, and why."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from accounts.models import User, Workspace
from accounts.services.audit import record_act
from billing.models import CreditAccount, PendingAct
from portal.lib.errors import DomainError

OBJECT_KIND: Final = "workspace"
BATCH_KIND: Final = "voucher_batch"
CREDIT: Final = "customer.credit"
DEBIT: Final = "customer.debit"
CREDIT_LIMIT: Final = "customer.credit_limit"
RECORDED_PAYMENT: Final = "customer.payment"
REFUND: Final = "job.refund"
PAYMENT_REFUND: Final = "payment.refund"
VOUCHERS: Final = "vouchers.add"
_IDS: Final = ("job_id", "payment_id")


class TooLittleLeft(DomainError):
    code = "too_little_left"
    status = 409
    message = _("Less than that is available. Nothing was changed.")


@dataclass(frozen=True)
class MoneyAct:
    """What is to be done, to whom, and why. `id` makes it happen once; `job_id`, `payment_id`: what about. `details`:
    what else it needs, as JSON can say it. `workspace_id` is None for what is about no single customer."""

    id: uuid.UUID
    act: str
    workspace_id: uuid.UUID | None
    amount_micros: int
    reason: str
    job_id: uuid.UUID | None = None
    payment_id: uuid.UUID | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def ledger_key(self) -> str:
        return f"operator:{self.id}"

    @property
    def arguments(self) -> dict[str, Any]:
        """All but what a PendingAct has columns for."""
        ids = {name: str(getattr(self, name)) for name in _IDS if getattr(self, name) is not None}
        return {**ids, **self.details}


def act_of(pending: PendingAct) -> MoneyAct:
    """What was asked for."""
    details = dict(pending.arguments)
    ids = {name: uuid.UUID(details.pop(name)) for name in _IDS if name in details}
    return MoneyAct(
        id=pending.pk,
        act=pending.act,
        workspace_id=pending.workspace_id,
        amount_micros=pending.amount_micros,
        reason=pending.reason,
        details=details,
        **ids,
    )


def customer_of(act: MoneyAct) -> uuid.UUID:
    """The workspace that it is about."""
    if act.workspace_id is None:
        raise ValueError("this act is about no customer")
    return act.workspace_id


def account_of_act(act: MoneyAct) -> CreditAccount:
    """The wallet that it is about."""
    return CreditAccount.objects.get(pk=customer_of(act))


def record(
    act: MoneyAct,
    actor: User,
    name: str,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
    reason: str = "",
) -> None:
    """A line in the audit log about the customer, or about the vouchers; a refund's own line is about its job."""
    if act.workspace_id is None:
        kind, object_id, object_name = BATCH_KIND, act.id, str(act.details.get("name", ""))
    else:
        workspace = Workspace.objects.filter(pk=act.workspace_id).first()
        kind, object_id = OBJECT_KIND, act.workspace_id
        object_name = workspace.name if workspace is not None else ""
    record_act(
        actor=actor,
        act=name,
        object_kind=kind,
        object_id=object_id,
        object_name=object_name,
        reason=reason or act.reason,
        before=before,
        after=after,
    )
