"""The database is lost at any statement of a booking: all of it is there, or nothing, and the next try completes it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from billing.models import Dispute, Payment, PaymentMethod, PaymentState, Refund, Voucher, VoucherState
from billing.payments.base import DisputeReport, PaymentReport, RefundReport, ReportState, SavedMethod
from billing.services import payment_refunds
from billing.services.disputes import apply_dispute
from billing.services.payment_refunds import apply_refund_report, refund_payment
from billing.services.payment_settlement import apply_report
from billing.services.vouchers import redeem
from tests.billing.books import all_books, assert_books_agree, balance
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, make_older, make_workspace, paid_top_up, top_up
from tests.billing.test_vouchers import make_batch


class Lost(OperationalError):
    """The connection went."""


def state() -> tuple[object, ...]:
    models = (Payment, PaymentMethod, Refund, Dispute, Voucher)
    rows = [list(model.objects.order_by("pk").values_list()) for model in models]
    return (all_books(), *rows)


def lose_at(number: int, work: Callable[[], object]) -> bool:
    """Do the work with the connection lost right before its statement of that number; False when it has fewer."""
    count = itertools.count()

    def lose(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        # What a lost connection undoes by itself, Django's rollback to a savepoint does here.
        if not sql.startswith(("ROLLBACK", "RELEASE")) and next(count) == number:
            raise Lost
        return execute(sql, *rest)

    with connection.execute_wrapper(lose):
        try:
            work()
        except Lost:
            return True
    return False


def assert_whole_or_nothing(work: Callable[[], object]) -> None:
    before = state()
    for number in itertools.count():
        assert number < 60
        if not lose_at(number, work):
            break
        assert state() == before, f"statement {number}"
    assert state() != before
    done = state()
    work()
    assert state() == done


def test_a_payment_is_booked_whole_or_not_at_all(db: None, stripe: FakeStripe) -> None:
    payment = top_up(make_workspace())
    report = PaymentReport(ReportState.SUCCEEDED, reference="pi_1", amount_micros=50 * YUAN, currency="CNY")
    # The account is made before, and is no booking.
    assert balance(payment.workspace_id) == (0, 0)
    assert_whole_or_nothing(lambda: apply_report(payment_id=payment.pk, report=report))
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_payment_is_booked_with_the_card_that_it_saves_or_not_at_all(db: None, stripe: FakeStripe) -> None:
    payment = top_up(make_workspace(), saves_method=True)
    card = SavedMethod(customer="cus_1", reference="pm_1", label="Visa •••• 4242")
    report = PaymentReport(
        ReportState.SUCCEEDED, reference="pi_1", amount_micros=50 * YUAN, currency="CNY", method=card
    )
    assert_whole_or_nothing(lambda: apply_report(payment_id=payment.pk, report=report))
    assert PaymentMethod.objects.get().provider_reference == "pm_1"
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_dispute_is_booked_whole_or_not_at_all(db: None, stripe: FakeStripe) -> None:
    payment = paid_top_up(stripe, make_workspace())
    report = DisputeReport(
        reference="dp_1", amount_micros=50 * YUAN, withdrawn=True, reinstated=True, won=True
    )
    assert_whole_or_nothing(lambda: apply_dispute(payment_id=payment.pk, report=report))
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_refund_that_bounced_is_put_back_whole_or_not_at_all(db: None, stripe: FakeStripe) -> None:
    payment = paid_top_up(stripe, make_workspace())
    refund = refund_payment(
        payment_id=payment.pk, amount_micros=YUAN, reason="", idempotency_key="r", requested_by_id=None
    )
    bounced = RefundReport(ReportState.FAILED, failure_code="expired_card")
    assert_whole_or_nothing(lambda: apply_refund_report(refund_id=refund.pk, report=bounced))
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_voucher_is_redeemed_whole_or_not_at_all(db: None, settings: Any) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOUCHER_TRIES_PER_MINUTE": 1000}
    _batch, (code,) = make_batch()
    workspace_id = make_workspace()
    before = state()
    for number in itertools.count():
        assert number < 60
        if not lose_at(number, lambda: redeem(workspace_id=workspace_id, user_id=uuid.uuid4(), code=code)):
            break
        if Voucher.objects.get().state == VoucherState.REDEEMED:
            break  # it was lost after all was done, when the voucher was read again
        assert state() == before, f"statement {number}"
    assert balance(workspace_id) == (20 * YUAN, 0)
    assert_books_agree(workspace_id)


def test_a_refund_lost_before_stripe_is_asked_goes_on_by_itself(
    db: None, stripe: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = paid_top_up(stripe, make_workspace())

    def dies(_refund: Refund) -> None:
        raise Lost

    with monkeypatch.context() as patched:
        patched.setattr(payment_refunds, "_send", dies)
        with pytest.raises(Lost):
            refund_payment(
                payment_id=payment.pk,
                amount_micros=YUAN,
                reason="",
                idempotency_key="r",
                requested_by_id=None,
            )
    refund = Refund.objects.get()
    assert balance(payment.workspace_id) == (49 * YUAN, 0)
    make_older(timedelta(minutes=1))
    payment_refunds.ask_open_refunds()
    refund.refresh_from_db()
    assert refund.state == PaymentState.SUCCEEDED
    assert stripe.calls["make_refund"] == 1
