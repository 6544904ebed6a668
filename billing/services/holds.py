"""What is held, and how it ends: captured for what was used, the rest released. Each exactly once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import connection, transaction

from billing.errors import HoldNotOpen, InsufficientCredit
from billing.models import CreditAccount, Hold
from billing.services import ledger
from billing.services.budgets import check_budgets
from portal.lib import transactions
from portal.lib.display import money_exact


def place_hold(
    *,
    workspace_id: uuid.UUID,
    job_id: uuid.UUID,
    amount_micros: int,
    minimum_micros: int = 0,
    user_id: uuid.UUID | None = None,
    api_key_id: uuid.UUID | None = None,
) -> Hold:
    """Set `amount_micros` aside for a job. Never overdraws: a conditional update decides.

    `minimum_micros`: what the job costs at least, once anything of it was used. `user_id`, `api_key_id`: whose budgets
    it counts against besides the workspace's.

    Raises:
        InsufficientCredit: less than that is available. Nothing was changed.
        BudgetReached: a hard budget would be overrun. Nothing was changed.
    """
    if amount_micros < 0:
        raise ValueError("a hold sets money aside, it never gives any")
    hold = Hold(
        workspace_id=workspace_id,
        job_id=job_id,
        amount_micros=amount_micros,
        minimum_micros=minimum_micros,
        user_id=user_id,
        api_key_id=api_key_id,
    )
    with transactions.joined():
        outcome = _place(hold, budgets_checked=False)
        if outcome == "budgets":
            check_budgets(
                workspace_id=workspace_id, user_id=user_id, api_key_id=api_key_id, amount_micros=amount_micros
            )
            outcome = _place(hold, budgets_checked=True)
    if outcome == "balance_too_low":
        raise _insufficient(workspace_id, amount_micros)
    if outcome == "already_posted":
        raise ledger.AlreadyPosted
    hold._state.adding = False
    return hold


def _place(hold: Hold, *, budgets_checked: bool) -> str:
    return ledger.call(
        "billing_place_hold(%s, %s, %s, %s, %s, %s, %s, %s)",
        [
            hold.pk,
            hold.workspace_id,
            hold.job_id,
            hold.amount_micros,
            hold.minimum_micros,
            hold.user_id,
            hold.api_key_id,
            budgets_checked,
        ],
    )


def _insufficient(workspace_id: uuid.UUID, amount_micros: int) -> InsufficientCredit:
    # A workspace that was never given any credit has no account yet.
    account = CreditAccount.objects.filter(workspace_id=workspace_id).first() or CreditAccount(
        workspace_id=workspace_id
    )
    return InsufficientCredit(
        needed=money_exact(amount_micros, account.currency),
        available=money_exact(account.available_micros, account.currency),
    )


def lock_account(*, workspace_id: uuid.UUID) -> None:
    """Lock the workspace's credit account: the first lock of every transaction that settles anything."""
    CreditAccount.objects.select_for_update(no_key=True).get(workspace_id=workspace_id)


def capture(*, job_id: uuid.UUID, attempt_id: uuid.UUID, amount_micros: int, last: bool = False) -> int:
    """Charge an attempt to its job's hold and return the micros charged, at most what is left of the hold.

    `last`: nothing more of the job will be charged; its hold is closed, and the rest released, in the same go.

    Call inside a transaction, before any tts row is locked: locks the credit account.

    Raises:
        HoldNotOpen: the hold was closed before.
        AlreadyPosted (billing.services.ledger): this attempt was charged before. Nothing was changed.
    """
    if amount_micros < 0:
        raise ValueError("a capture takes money, it never gives any")
    # Lock order: the credit account first, then the hold, so that a capture and a release cannot cross.
    outcome, charged = _call("billing_settle(%s, %s, %s, %s)", [job_id, attempt_id, amount_micros, last])
    if outcome == "hold_not_open":
        raise HoldNotOpen
    _expect_posted(outcome, job_id)
    return charged


def release(*, job_id: uuid.UUID) -> int:
    """Close the job's hold and give back what was not captured; returns those micros. A closed hold gives 0.

    Call inside a transaction, before any tts row is locked: locks the credit account.
    """
    outcome, released = _call("billing_release(%s)", [job_id])
    if outcome == "hold_not_open":
        return 0
    _expect_posted(outcome, job_id)
    return released


def _call(function: str, arguments: Sequence[uuid.UUID | int]) -> tuple[str, int]:
    """The outcome and the micros of one of the database's functions on holds. Needs the caller's transaction."""
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "money moves together with what it is for: open a transaction"
        )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {function}", arguments)  # noqa: S608 - named above, never by a caller
        outcome, micros = cursor.fetchone()
    return outcome, micros


def _expect_posted(outcome: str, job_id: uuid.UUID) -> None:
    if outcome == "no_hold":
        raise Hold.DoesNotExist(f"job {job_id} has no hold")
    if outcome == "already_posted":
        raise ledger.AlreadyPosted
    if outcome != "posted":
        raise ledger.BalanceTooLow
