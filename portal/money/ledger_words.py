"""The ledger as its owner reads it: what happened, what it did to the balance, and the job that it was for."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from accounts.models import Workspace
from billing.models import LedgerAccount, LedgerTransaction, TransactionKind
from billing.selectors.ledger import moved
from portal.lib.money import micros_as_decimal
from tts.selectors.jobs import jobs_of

COLUMNS: Final = [
    "time",
    "id",
    "kind",
    "available_micros",
    "held_micros",
    "balance_change",
    "currency",
    "job",
    "reason",
]


@dataclass(frozen=True)
class LedgerLine:
    """A movement. `change_micros` is what it did to the balance, that is to available and held together; `job_exists`
    says whether the job's page is still there."""

    id: uuid.UUID
    created_at: datetime
    kind: TransactionKind
    available_micros: int
    held_micros: int
    job_id: uuid.UUID | None
    job_exists: bool
    reason: str

    @property
    def change_micros(self) -> int:
        return self.available_micros + self.held_micros

    @property
    def label(self) -> str:
        return str(self.kind.label)


def ledger_lines(workspace: Workspace, transactions: Iterable[LedgerTransaction]) -> list[LedgerLine]:
    """Lines of transactions that come with their entries. One query."""
    rows = list(transactions)
    job_ids = {row.job_id for row in rows if row.job_id is not None}
    existing = (
        set(jobs_of(workspace).filter(pk__in=job_ids).values_list("pk", flat=True)) if job_ids else set()
    )
    return [
        LedgerLine(
            id=row.pk,
            created_at=row.created_at,
            kind=TransactionKind(row.kind),
            available_micros=moved(row, LedgerAccount.AVAILABLE),
            held_micros=moved(row, LedgerAccount.HELD),
            job_id=row.job_id,
            job_exists=row.job_id in existing,
            reason=row.reason,
        )
        for row in rows
    ]


def cells(line: LedgerLine, currency: str) -> list[Any]:
    """The line under COLUMNS."""
    return [
        line.created_at,
        line.id,
        line.kind.value,
        line.available_micros,
        line.held_micros,
        f"{micros_as_decimal(line.change_micros):.6f}",
        currency,
        line.job_id,
        line.reason,
    ]
