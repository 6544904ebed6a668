"""Any order of what can happen to money, repeated and out of order, against a model of a few lines.

The model knows nothing of the tables: a list of grants, what is held for whom, and what is owed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing.errors import HoldNotOpen, InsufficientCredit, RefundTooHigh
from billing.models import (
    GRANT_PRIORITY,
    CreditAccount,
    CreditGrant,
    GrantKind,
    LedgerAccount,
    TransactionKind,
)
from billing.services import grants, holds, ledger, refunds
from billing.services.debits import debit
from portal.lib.clock import now
from tests.billing.books import assert_books_agree, balance, total

AMOUNTS = st.integers(min_value=1, max_value=900)
WHICH = st.integers(min_value=0, max_value=9)


@dataclass
class Credit:
    """A grant as the model sees it."""

    id: uuid.UUID
    kind: GrantKind
    left: int
    expires: bool
    number: int

    @property
    def order(self) -> tuple[int, bool, int]:
        return (GRANT_PRIORITY[self.kind], not self.expires, self.number)


@dataclass
class Job:
    id: uuid.UUID
    held: int
    minimum: int
    rated: int = 0
    captured: int = 0
    refunded: int = 0
    is_open: bool = True
    attempts: list[uuid.UUID] = field(default_factory=list)
    # What each grant paid for it, in the order in which they did first; what none did was owed.
    paid_by: dict[uuid.UUID, int] = field(default_factory=dict)
    last_used: dict[uuid.UUID, int] = field(default_factory=dict)


class Money(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.workspace_id = uuid.uuid4()
        ledger.ensure_account(workspace_id=self.workspace_id)
        self.limit = 0
        self.credits: list[Credit] = []
        self.jobs: list[Job] = []
        self.keys: list[tuple[GrantKind, int, bool, str]] = []
        self.owed = 0
        self.outside = 0  # what is on the platform's side of the books
        self.uses = 0

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    # -- the model -------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        return sum(job.held - job.captured for job in self.jobs if job.is_open)

    @property
    def available(self) -> int:
        return sum(credit.left for credit in self.credits) - self.owed - self.held

    def spend(self, amount: int) -> dict[uuid.UUID, int]:
        """Take it from the grants in their order; the rest is owed."""
        paid: dict[uuid.UUID, int] = {}
        for credit in sorted(self.credits, key=lambda credit: credit.order):
            taken = min(amount, credit.left)
            if taken:
                credit.left -= taken
                amount -= taken
                paid[credit.id] = taken
        self.owed += amount
        return paid

    def receive(self, grant_id: uuid.UUID, kind: GrantKind, amount: int, *, expires: bool) -> None:
        pays = min(self.owed, amount)
        self.owed -= pays
        self.credits.append(Credit(grant_id, kind, amount - pays, expires, len(self.credits)))

    # -- what can happen -------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(list(GrantKind)), amount=AMOUNTS, expires=st.booleans())
    def credit_comes_in(self, kind: GrantKind, amount: int, expires: bool) -> None:
        self.keys.append((kind, amount, expires, f"key:{uuid.uuid4()}"))
        grant_id = self.give(*self.keys[-1])
        assert grant_id is not None
        self.receive(grant_id, kind, amount, expires=expires)
        self.outside += amount

    @precondition(lambda self: self.keys)
    @rule(which=WHICH)
    def the_same_comes_in_again(self, which: int) -> None:
        assert self.give(*self.keys[which % len(self.keys)]) is None

    def give(self, kind: GrantKind, amount: int, expires: bool, key: str) -> uuid.UUID | None:
        return grants.grant(
            workspace_id=self.workspace_id,
            amount_micros=amount,
            kind=kind,
            idempotency_key=key,
            # One moment for all that expire: what is older goes first then.
            expires_at=EXPIRY if expires else None,
        )

    @rule(limit=st.integers(min_value=0, max_value=500))
    def the_credit_limit_changes(self, limit: int) -> None:
        CreditAccount.objects.filter(pk=self.workspace_id).update(credit_limit_micros=limit)
        self.limit = limit

    @rule(amount=AMOUNTS, minimum=st.integers(min_value=0, max_value=50))
    def a_job_is_taken_in(self, amount: int, minimum: int) -> None:
        job = Job(uuid.uuid4(), amount, minimum)
        fits = self.available - amount >= -self.limit
        try:
            holds.place_hold(
                workspace_id=self.workspace_id, job_id=job.id, amount_micros=amount, minimum_micros=minimum
            )
        except InsufficientCredit:
            assert not fits
        else:
            assert fits
            self.jobs.append(job)

    @precondition(lambda self: self.jobs)
    @rule(which=WHICH, amount=st.integers(min_value=0, max_value=900))
    def an_attempt_is_charged(self, which: int, amount: int) -> None:
        job, attempt = self.jobs[which % len(self.jobs)], uuid.uuid4()
        try:
            charged = holds.capture(job_id=job.id, attempt_id=attempt, amount_micros=amount)
        except HoldNotOpen:
            assert not job.is_open
            return
        assert job.is_open
        job.attempts.append(attempt)
        job.rated += amount
        target = min(job.held, max(job.rated, job.minimum)) if job.rated else 0
        assert charged == target - job.captured
        job.captured = target
        for grant_id, taken in self.spend(charged).items():
            job.paid_by[grant_id] = job.paid_by.get(grant_id, 0) + taken
            self.uses += 1
            job.last_used[grant_id] = self.uses
        self.outside -= charged

    @precondition(lambda self: any(job.attempts for job in self.jobs))
    @rule(which=WHICH)
    def an_attempt_is_charged_again(self, which: int) -> None:
        charged = [job for job in self.jobs if job.attempts]
        job = charged[which % len(charged)]
        with pytest.raises((ledger.AlreadyPosted, HoldNotOpen)):
            holds.capture(job_id=job.id, attempt_id=job.attempts[0], amount_micros=5)

    @precondition(lambda self: self.jobs)
    @rule(which=WHICH)
    def a_job_ends(self, which: int) -> None:
        job = self.jobs[which % len(self.jobs)]
        released = holds.release(job_id=job.id)
        assert released == (job.held - job.captured if job.is_open else 0)
        job.is_open = False

    @precondition(lambda self: any(not job.is_open for job in self.jobs))
    @rule(which=WHICH, amount=AMOUNTS)
    def a_job_is_refunded(self, which: int, amount: int) -> None:
        ended = [job for job in self.jobs if not job.is_open]
        job = ended[which % len(ended)]
        try:
            refunds.refund_part(
                job_id=job.id, amount_micros=amount, idempotency_key=str(uuid.uuid4()), reason="test"
            )
        except RefundTooHigh:
            assert amount > job.captured - job.refunded
            return
        assert amount <= job.captured - job.refunded
        job.refunded += amount
        self.outside += amount
        for grant_id in sorted(job.paid_by, key=lambda grant_id: -job.last_used[grant_id]):
            back = min(amount, job.paid_by[grant_id])
            if back:
                job.paid_by[grant_id] -= back
                next(credit for credit in self.credits if credit.id == grant_id).left += back
                self.uses += 1
                amount -= back
        forgiven = min(self.owed, amount)
        self.owed -= forgiven
        if amount > forgiven:
            made = CreditGrant.objects.exclude(pk__in=[credit.id for credit in self.credits]).get(
                workspace_id=self.workspace_id
            )
            self.credits.append(Credit(made.pk, GrantKind.PAID, amount - forgiven, False, len(self.credits)))

    @rule(amount=AMOUNTS, may_owe=st.booleans())
    def a_fee_falls_due(self, amount: int, may_owe: bool) -> None:
        fits = may_owe or self.available - amount >= -self.limit
        try:
            debit(
                workspace_id=self.workspace_id,
                amount_micros=amount,
                kind=TransactionKind.FEE,
                idempotency_key=str(uuid.uuid4()),
                may_owe=may_owe,
            )
        except ledger.BalanceTooLow:
            assert not fits
        else:
            assert fits
            self.spend(amount)
            self.outside -= amount

    @precondition(lambda self: any(credit.kind == GrantKind.PAID for credit in self.credits))
    @rule(which=WHICH, amount=AMOUNTS, dispute=st.booleans())
    def a_payment_goes_back(self, which: int, amount: int, dispute: bool) -> None:
        paid = [credit for credit in self.credits if credit.kind == GrantKind.PAID]
        credit = paid[which % len(paid)]
        fits = dispute or amount <= min(credit.left, self.available)
        try:
            grants.take_back(
                grant_id=credit.id,
                amount_micros=amount,
                kind=TransactionKind.DISPUTE if dispute else TransactionKind.PAYOUT,
                idempotency_key=str(uuid.uuid4()),
                may_owe=dispute,
            )
        except ledger.BalanceTooLow:
            assert not fits
            return
        assert fits
        taken = min(credit.left, amount)
        credit.left -= taken
        self.owed += amount - taken
        self.outside -= amount

    @precondition(lambda self: any(credit.expires for credit in self.credits))
    @rule()
    def credit_expires(self) -> None:
        before = CreditGrant.objects.filter(workspace_id=self.workspace_id, expires_at__isnull=False)
        before.update(expires_at=now() - timedelta(days=1))
        grants.expire_grants()
        before.update(expires_at=EXPIRY)
        # What is held counts against what is spent first; nothing more than is available can go, but of what a plan
        # includes: that ends whatever is owed.
        for credit in sorted((c for c in self.credits if c.expires and c.left), key=lambda c: c.order):
            ahead = sum(other.left for other in self.credits if other.order < credit.order)
            most = credit.left if credit.kind == GrantKind.INCLUDED else self.available
            gone = min(credit.left - max(0, self.held - ahead), credit.left, most)
            if gone > 0:
                credit.left -= gone
                self.outside -= gone

    # -- what is always so -----------------------------------------------------------------------------------

    @invariant()
    def the_books_are_the_model(self) -> None:
        assert balance(self.workspace_id) == (self.available, self.held)
        account = CreditAccount.objects.get(pk=self.workspace_id)
        assert account.owed_micros == self.owed
        left = dict(
            CreditGrant.objects.filter(workspace_id=self.workspace_id).values_list("pk", "remaining_micros")
        )
        assert left == {credit.id: credit.left for credit in self.credits}

    @invariant()
    def the_ledger_sums_to_zero(self) -> None:
        assert_books_agree(self.workspace_id)
        others = set(LedgerAccount) - {LedgerAccount.AVAILABLE, LedgerAccount.HELD}
        assert sum(total(self.workspace_id, account) for account in others) == -self.outside


EXPIRY = now() + timedelta(days=3650)


@pytest.mark.django_db
def test_money_in_any_order_is_what_the_model_says() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Money,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
