"""Vouchers: made in batches, redeemed once each, in one transaction with the credit."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction

from accounts.models import Workspace
from billing.amounts import check_payable
from billing.errors import (
    CurrencyNotAccepted,
    TooManyVoucherTries,
    VoucherBatchInvalid,
    VoucherDatesInvalid,
    VoucherExpired,
    VoucherUnknown,
    VoucherUsed,
    VoucherVoided,
)
from billing.models import CreditAccount, GrantKind, Voucher, VoucherBatch, VoucherState
from billing.services import grants, ledger
from billing.voucher_codes import START_SIGNS, code_hash, new_code, normal_code
from portal.lib.clock import database_now
from portal.lib.errors import NotFound
from portal.lib.throttling import count_failure

logger = logging.getLogger(__name__)
MOST_AT_ONCE: Final = 10_000
# Compare and set: of all who come with the code, the database lets one through.
_REDEEM: Final = """
UPDATE billing_voucher SET state = 'redeemed', workspace_id = %s, redeemed_by_id = %s,
    redeemed_at = clock_timestamp(), grant_id = %s
WHERE id = %s AND state = 'new' RETURNING id
"""


def check_batch(
    *, amount_micros: int, currency: str, count: int, expires_at: datetime | None, credit_days: int | None
) -> None:
    """Whether such vouchers can be made. Raises what `create_batch` raises."""
    check_payable(amount_micros, currency)
    if type(count) is not int or not 1 <= count <= MOST_AT_ONCE:
        raise VoucherBatchInvalid(most=MOST_AT_ONCE)
    if (expires_at is not None and expires_at <= database_now()) or credit_days == 0:
        raise VoucherDatesInvalid


@transaction.atomic
def create_batch(
    *,
    name: str,
    amount_micros: int,
    currency: str,
    count: int,
    expires_at: datetime | None,
    credit_days: int | None,
    created_by_id: uuid.UUID,
    batch_id: uuid.UUID | None = None,
) -> tuple[VoucherBatch, list[str]]:
    """Make vouchers, and return the batch with their codes: this once, for only their hashes are stored.

    `batch_id`: of a form that may be sent twice; the second time the database refuses it (IntegrityError).
    `expires_at`: until when a code may be redeemed; `credit_days`: how long its credit lasts then. None: without end.

    Raises:
        VoucherBatchInvalid: not between 1 and 10,000 of them.
        VoucherDatesInvalid: they would have expired already, or their credit at once.
        AmountInvalid, AmountNotPositive, AmountTooPrecise, AmountOutOfRange
    """
    check_batch(
        amount_micros=amount_micros,
        currency=currency,
        count=count,
        expires_at=expires_at,
        credit_days=credit_days,
    )
    batch = VoucherBatch.objects.create(
        pk=batch_id or uuid.uuid4(),
        name=name,
        amount_micros=amount_micros,
        currency=currency,
        expires_at=expires_at,
        credit_days=credit_days,
        created_by_id=created_by_id,
    )
    codes = [new_code() for _ in range(count)]
    plain = [normal_code(code) for code in codes]
    Voucher.objects.bulk_create(
        [
            Voucher(batch=batch, code_sha256=code_hash(signs), code_start=signs[:START_SIGNS])
            for signs in plain
        ],
        batch_size=1000,
    )
    logger.info("voucher_batch_made", extra={"batch": batch.pk, "vouchers": count, "by": created_by_id})
    return batch, codes


def redeem(*, workspace_id: uuid.UUID, user_id: uuid.UUID, code: str) -> Voucher:
    """Give the workspace a voucher's credit, and return the voucher. Locks the credit account.

    Raises:
        TooManyVoucherTries: the workspace has tried too many codes within a minute.
        VoucherMistyped: a typing error; VoucherUnknown: none, but there is no such code.
        VoucherUsed, VoucherExpired, VoucherVoided, CurrencyNotAccepted, NotFound
    """
    if not count_failure(scope="voucher", setting="VOUCHER_TRIES_PER_MINUTE", address=str(workspace_id)):
        raise TooManyVoucherTries
    hashed = code_hash(normal_code(code))
    voucher = Voucher.objects.select_related("batch").filter(code_sha256=hashed).first()
    if voucher is None:
        raise VoucherUnknown
    if not Workspace.objects.filter(pk=workspace_id).exists():
        raise NotFound
    _check(voucher)
    with transaction.atomic():
        _redeem(voucher, workspace_id, user_id)
    voucher.refresh_from_db()
    logger.info("voucher_redeemed", extra={"voucher": voucher.pk, "workspace": workspace_id})
    return voucher


def _check(voucher: Voucher) -> None:
    if voucher.state == VoucherState.REDEEMED:
        raise VoucherUsed
    if voucher.state == VoucherState.VOIDED:
        raise VoucherVoided
    if voucher.batch.expires_at is not None and voucher.batch.expires_at <= database_now():
        raise VoucherExpired


def _redeem(voucher: Voucher, workspace_id: uuid.UUID, user_id: uuid.UUID) -> None:
    batch = voucher.batch
    ledger.ensure_account(workspace_id=workspace_id)
    kept_in = CreditAccount.objects.values_list("currency", flat=True).get(pk=workspace_id)
    if kept_in != batch.currency:
        raise CurrencyNotAccepted(currency=kept_in)
    # The credit first: its account's lock comes before the voucher's. Whoever does not get the voucher gives it back.
    grant_id = grants.grant(
        workspace_id=workspace_id,
        amount_micros=batch.amount_micros,
        idempotency_key=f"voucher:{voucher.pk}",
        kind=GrantKind.VOUCHER,
        expires_at=database_now() + timedelta(days=batch.credit_days) if batch.credit_days else None,
    )
    if grant_id is None:
        raise VoucherUsed
    with connection.cursor() as cursor:
        cursor.execute(_REDEEM, [workspace_id, user_id, grant_id, voucher.pk])
        if cursor.fetchone() is None:
            voucher.refresh_from_db(fields=["state"])
            raise VoucherVoided if voucher.state == VoucherState.VOIDED else VoucherUsed


def void_voucher(*, voucher_id: int) -> bool:
    """Withdraw one voucher; False, and nothing changed, when it was redeemed or withdrawn before."""
    return bool(
        Voucher.objects.filter(pk=voucher_id, state=VoucherState.NEW).update(state=VoucherState.VOIDED)
    )


def void_batch(*, batch_id: uuid.UUID) -> int:
    """Withdraw the vouchers of a batch that were not redeemed; returns how many."""
    return Voucher.objects.filter(batch_id=batch_id, state=VoucherState.NEW).update(state=VoucherState.VOIDED)
