"""Beginning a payment: once for each key, whatever is repeated, by whomever."""

from __future__ import annotations

import logging
import uuid

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.models import Workspace
from billing.amounts import check_payable, coins_of
from billing.errors import (
    AmountInvalid,
    AmountNotPositive,
    CurrencyNotAccepted,
    IdempotencyKeyReused,
    InvoiceNotPayable,
    NoPaymentMethod,
    PaymentProviderUnknown,
    PaymentReferenceMissing,
    PaymentReferenceUsed,
)
from billing.invoicing.amounts import payable
from billing.models import (
    CreditAccount,
    Invoice,
    InvoiceKind,
    InvoiceState,
    Payment,
    PaymentMethod,
    PaymentPurpose,
    PaymentState,
)
from billing.payments import registry
from billing.payments.base import (
    PaymentProvider,
    ProviderRefused,
    ProviderUnreachable,
)
from billing.services import ledger, payment_settlement
from billing.services.payment_requests import request_of
from portal.lib.errors import Conflict, NotFound
from portal.lib.uniqueness import is_duplicate

logger = logging.getLogger(__name__)


def begin_top_up(
    *,
    workspace_id: uuid.UUID,
    provider_name: str,
    amount_micros: int,
    currency: str,
    idempotency_key: str,
    saves_method: bool = False,
) -> Payment:
    """Begin to add credit, and return the payment: at `pay_url` the customer pays, unless it has an end already.

    The same key gives the same payment, and asks the provider nothing new. `state` is UNKNOWN where the provider did
    not answer: it is asked again by the clock, and FAILED where it refused (`failure_code`). Call outside of a
    transaction: the provider is asked over the network.

    Raises:
        NotFound: no such workspace.
        PaymentProviderUnknown, CurrencyNotAccepted, AmountInvalid, AmountNotPositive, AmountTooPrecise,
        AmountOutOfRange, IdempotencyKeyReused
    """
    provider = registry.offered_provider(provider_name)
    check_payable(amount_micros, currency)
    _check_currency(workspace_id, currency, provider)
    payment = create_payment(
        Payment(
            workspace_id=workspace_id,
            provider=provider.name,
            purpose=PaymentPurpose.TOP_UP,
            currency=currency,
            amount_micros=amount_micros,
            idempotency_key=idempotency_key,
            saves_method=saves_method and provider.saves_methods,
        )
    )
    return send(payment=payment, provider=provider)


def begin_invoice_payment(
    *,
    invoice: Invoice,
    provider_name: str,
    idempotency_key: str,
    method: PaymentMethod | None = None,
    agreed_micros: int | None = None,
) -> Payment:
    """Begin to pay what is due of a final invoice: on the provider's page, or with a saved method. As `begin_top_up`.

    Part of a cent that is due is paid by a whole one; the rest of it is credit. `agreed_micros`: what whoever pays was
    told, where they were.

    Raises:
        Conflict: another amount is due now than was agreed to.
        InvoiceNotPayable: nothing is due, it is no final invoice, or another payment of it is on its way.
        NoPaymentMethod: the method is another workspace's, another provider's, or was removed.
    """
    provider = registry.offered_provider(provider_name)
    _check_currency(invoice.workspace_id, invoice.currency, provider)
    if method is not None and (
        method.workspace_id != invoice.workspace_id
        or method.provider != provider.name
        or method.removed_at is not None
    ):
        raise NoPaymentMethod
    with transaction.atomic():
        # Its lock makes two payments of it wait for each other.
        locked = Invoice.objects.select_for_update(no_key=True).get(pk=invoice.pk)
        payment = Payment(
            workspace_id=locked.workspace_id,
            provider=provider.name,
            purpose=PaymentPurpose.INVOICE,
            currency=locked.currency,
            amount_micros=payable(locked.due_micros - locked.paid_micros),
            idempotency_key=idempotency_key,
            invoice=locked,
            method=method,
        )
        known = Payment.objects.filter(workspace_id=locked.workspace_id, idempotency_key=idempotency_key)
        if not known.exists():
            _check_invoice(locked)
            if agreed_micros not in (None, payment.amount_micros):
                raise Conflict
        elif (first := known.get()).invoice_id == locked.pk:
            payment.amount_micros = first.amount_micros
        payment = create_payment(payment)
    return send(payment=payment, provider=provider)


def _check_invoice(invoice: Invoice) -> None:
    is_open = invoice.state == InvoiceState.FINAL and invoice.kind == InvoiceKind.INVOICE
    if not is_open or invoice.due_micros - invoice.paid_micros <= 0:
        raise InvoiceNotPayable
    if invoice.payments.filter(state__in=payment_settlement.OPEN).exists():
        raise InvoiceNotPayable
    coins_of(payable(invoice.due_micros - invoice.paid_micros), invoice.currency)


def record_payment(
    *,
    workspace_id: uuid.UUID,
    provider_name: str,
    amount_micros: int,
    currency: str,
    reference: str,
    note: str,
    recorded_by_id: uuid.UUID,
    idempotency_key: str,
    invoice: Invoice | None = None,
) -> Payment:
    """Record money that an operator saw arrive ("bank_transfer" or "cash"), and book it at once.

    `reference`: the bank's for the transfer, or the receipt's number; one reference is recorded once.

    Raises:
        PaymentProviderUnknown: not a way to pay that is recorded by hand.
        PaymentReferenceUsed: it was recorded before; PaymentReferenceMissing: it is empty.
        InvoiceNotPayable: the invoice is another workspace's, or not final.
        CurrencyNotAccepted, AmountInvalid, AmountNotPositive, AmountTooPrecise, IdempotencyKeyReused, NotFound
    """
    if provider_name not in registry.RECORDED:
        raise PaymentProviderUnknown
    provider = registry.provider(provider_name)
    # What arrived has arrived, however little or much it is.
    if type(amount_micros) is not int or amount_micros > 2**62:
        raise AmountInvalid
    if amount_micros <= 0:
        raise AmountNotPositive
    coins_of(amount_micros, currency)
    _check_currency(workspace_id, currency, provider)
    if invoice is not None and (invoice.workspace_id != workspace_id or invoice.state != InvoiceState.FINAL):
        raise InvoiceNotPayable
    if not reference.strip():
        raise PaymentReferenceMissing
    with transaction.atomic():
        payment = create_payment(
            Payment(
                workspace_id=workspace_id,
                provider=provider.name,
                purpose=PaymentPurpose.TOP_UP if invoice is None else PaymentPurpose.INVOICE,
                currency=currency,
                amount_micros=amount_micros,
                idempotency_key=idempotency_key,
                provider_reference=reference.strip(),
                note=note,
                recorded_by_id=recorded_by_id,
                invoice=invoice,
            )
        )
        payment_settlement.settle(payment=payment, reference=payment.provider_reference)
    payment.refresh_from_db()
    return payment


def check_recordable(*, provider_name: str, reference: str, amount_micros: int, currency: str) -> None:
    """Whether a payment may be recorded so, as far as that is known before it is. Changes nothing.

    Raises AmountTooPrecise, PaymentReferenceUsed.
    """
    coins_of(amount_micros, currency)
    if Payment.objects.filter(provider=provider_name, provider_reference=reference.strip()).exists():
        raise PaymentReferenceUsed(field="reference")


def _check_currency(workspace_id: uuid.UUID, currency: str, provider: PaymentProvider) -> None:
    exists = Workspace.objects.filter(pk=workspace_id).exists()
    # Money that is recorded may come for a workspace that was deleted with an open invoice.
    was_here = provider.is_recorded and CreditAccount.objects.filter(pk=workspace_id).exists()
    if not exists and not was_here:
        raise NotFound
    ledger.ensure_account(workspace_id=workspace_id)
    kept_in = CreditAccount.objects.values_list("currency", flat=True).get(pk=workspace_id)
    if currency != kept_in or (provider.currencies is not None and currency not in provider.currencies):
        raise CurrencyNotAccepted(currency=kept_in)


def create_payment(payment: Payment) -> Payment:
    """Store a new payment, and return it; or the one that was begun with this key before.

    Raises:
        IdempotencyKeyReused: the key was used for another payment.
        PaymentReferenceUsed: the provider's reference is another payment's.
    """
    try:
        with transaction.atomic():
            payment.save(force_insert=True)
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        first = Payment.objects.filter(
            workspace_id=payment.workspace_id, idempotency_key=payment.idempotency_key
        ).first()
        if first is None:
            raise PaymentReferenceUsed(field="reference") from error
        if _contents(first) != _contents(payment):
            raise IdempotencyKeyReused from error
        return first
    return payment


def _contents(payment: Payment) -> tuple[object, ...]:
    return (
        payment.provider,
        payment.purpose,
        payment.amount_micros,
        payment.currency,
        payment.invoice_id,
        payment.method_id,
        payment.saves_method,
        payment.recorded_by_id,
    )


def send(*, payment: Payment, provider: PaymentProvider) -> Payment:
    """Tell the provider of a payment that it does not know yet, or ask about one that it may know; book what it says,
    and return the payment as it is.

    With the payment's own id as its idempotency key: however often this is called, and wherever it is interrupted,
    one payment is made.
    """
    if payment.state == PaymentState.CREATED and not payment.pay_url:
        mine = Payment.objects.filter(pk=payment.pk)
        is_first = bool(mine.filter(asked_at__isnull=True).update(asked_at=Now()))
        if not is_first:
            mine.update(asked_at=Now())
        request = request_of(payment)
        try:
            # One that it may know is asked about: a day later its key is forgotten there.
            report = provider.begin(request) if is_first else provider.ask(request)
        except ProviderUnreachable as error:
            logger.warning("provider_unreachable", extra={"payment": payment.pk, "reason": error.code})
            payment_settlement.mark_unknown(payment_id=payment.pk, reason=error.code)
        except ProviderRefused as error:
            payment_settlement.give_up(
                payment_id=payment.pk, state=PaymentState.FAILED, failure_code=error.code
            )
        else:
            payment_settlement.apply_report(payment_id=payment.pk, report=report)
    payment.refresh_from_db()
    return payment
