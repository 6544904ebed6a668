"""Writing down what operators do."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from accounts.models import AuditEntry, User
from portal.lib.logging import request_id_var

# The address that the act came from, set for the time of a request by whoever serves it; None for commands and clocks.
address_var: ContextVar[str | None] = ContextVar("audit_address", default=None)


def record_act(
    *,
    actor: User | None,
    act: str,
    object_kind: str,
    object_id: object,
    reason: str,
    object_name: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    address: str | None = None,
) -> AuditEntry:
    """Store one line of the audit log and return it.

    Call inside the transaction that does the act: there is no act without its line, and no line without its act.
    `before` and `after` are plain JSON without anything that a customer wrote. `address` is the request's by itself.
    """
    return AuditEntry.objects.create(
        actor=actor,
        actor_email=actor.email if actor is not None else "",
        address=address if address is not None else address_var.get(),
        request_id=request_id_var.get(),
        act=act,
        object_kind=object_kind,
        object_id=str(object_id),
        object_name=object_name[:120],
        reason=reason[:300],
        before=before or {},
        after=after or {},
    )
