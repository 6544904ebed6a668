"""Payments, saved methods and vouchers, for those who may see them."""

from __future__ import annotations

import uuid

from django.db.models import Count, Q, QuerySet

from accounts.models import Workspace
from accounts.tenancy import one_of, owned_by
from billing.models import (
    AutomaticTopUp,
    Dispute,
    Invoice,
    Payment,
    PaymentMethod,
    PaymentState,
    ProviderEvent,
    Refund,
    VoucherBatch,
    VoucherState,
)


def payments_of(workspace: Workspace) -> QuerySet[Payment]:
    """The workspace's payments, the newest first."""
    return owned_by(Payment.objects.select_related("method", "invoice"), workspace).order_by("-created_at")


def payment_of(workspace: Workspace, payment_id: uuid.UUID | str) -> Payment:
    """One of the workspace's payments. Raises NotFound."""
    return one_of(payments_of(workspace), payment_id)


def open_payment_of(invoice: Invoice) -> Payment | None:
    """A payment of the invoice that has no end yet; None where none is on its way."""
    open_states = (PaymentState.CREATED, PaymentState.UNKNOWN)
    return Payment.objects.filter(invoice=invoice, state__in=open_states).order_by("created_at").first()


def methods_of(workspace: Workspace) -> QuerySet[PaymentMethod]:
    """The workspace's saved methods, the default one first."""
    saved = PaymentMethod.objects.filter(removed_at__isnull=True)
    return owned_by(saved, workspace).order_by("-is_default", "created_at")


def automatic_top_up_of(workspace: Workspace) -> AutomaticTopUp | None:
    """The workspace's rule; None where it never had one."""
    return owned_by(AutomaticTopUp.objects.all(), workspace).first()


def unknown_payments() -> QuerySet[Payment]:
    """Of all workspaces: what is being looked into, the oldest first. For operators."""
    return Payment.objects.filter(state=PaymentState.UNKNOWN).order_by("created_at")


def open_refunds() -> QuerySet[Refund]:
    """Of all workspaces: refunds that have no end yet, the oldest first. For operators."""
    open_states = (PaymentState.CREATED, PaymentState.UNKNOWN)
    return Refund.objects.filter(state__in=open_states).select_related("payment").order_by("created_at")


def disputes() -> QuerySet[Dispute]:
    """Of all workspaces, the newest first. For operators."""
    return Dispute.objects.select_related("payment").order_by("-created_at")


def messages_in_trouble() -> QuerySet[ProviderEvent]:
    """Messages of providers that could not be worked on yet, or were given up. For operators."""
    return ProviderEvent.objects.exclude(error_code__in=("", "not_ours")).order_by("-received_at")


def voucher_batches() -> QuerySet[VoucherBatch]:
    """All batches, the newest first, each with how many vouchers are `new`, `redeemed` and `voided`. For operators."""
    return VoucherBatch.objects.annotate(
        new=Count("vouchers", filter=Q(vouchers__state=VoucherState.NEW)),
        redeemed=Count("vouchers", filter=Q(vouchers__state=VoucherState.REDEEMED)),
        voided=Count("vouchers", filter=Q(vouchers__state=VoucherState.VOIDED)),
    ).order_by("-created_at")
