"""Reads of the audit log. For operators."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from accounts.models import AuditEntry


def audit_entries(*, query: str = "", act: str = "") -> QuerySet[AuditEntry]:
    """All lines, in no order yet. `query`: part of a person's address, an object's name or a reason; `act`: a kind of
    act, such as "device" or "device.drain".
    """
    entries = AuditEntry.objects.all()
    if query:
        entries = entries.filter(
            Q(actor_email__icontains=query)
            | Q(object_name__icontains=query)
            | Q(object_id=query)
            | Q(reason__icontains=query)
        )
    if act:
        entries = entries.filter(Q(act=act) | Q(act__startswith=f"{act}."))
    return entries


def audit_of(*, object_kind: str, object_id: object) -> list[AuditEntry]:
    """What was done to one object, the newest first."""
    return list(
        AuditEntry.objects.filter(object_kind=object_kind, object_id=str(object_id)).order_by("-created_at")
    )
