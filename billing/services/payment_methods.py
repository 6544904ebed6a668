"""Saved ways to pay: kept by the provider, known here by its name for them."""

from __future__ import annotations

import logging
import uuid

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from billing.errors import NoPaymentMethod, PaymentProviderUnknown, ProviderUnavailable
from billing.models import AutomaticTopUp, PaymentMethod
from billing.payments import registry
from billing.payments.base import ProviderRefused, ProviderUnreachable, SavedMethod
from billing.services import holds, ledger

logger = logging.getLogger(__name__)


def saved_methods(workspace_id: uuid.UUID) -> QuerySet[PaymentMethod]:
    """The workspace's saved methods, the default one first."""
    return PaymentMethod.objects.filter(workspace_id=workspace_id, removed_at__isnull=True).order_by(
        "-is_default", "created_at"
    )


def default_method(workspace_id: uuid.UUID) -> PaymentMethod | None:
    return saved_methods(workspace_id).filter(is_default=True).first()


def begin_saving(*, workspace_id: uuid.UUID, provider_name: str, return_url: str) -> str:
    """The address of the provider's page on which a way to pay is saved; the clock learns of it by an event.

    Raises:
        PaymentProviderUnknown: the provider is not offered, or saves nothing.
        ProviderUnavailable
    """
    provider = registry.offered_provider(provider_name)
    if not provider.saves_methods:
        raise PaymentProviderUnknown
    known = saved_methods(workspace_id).filter(provider=provider_name).first()
    try:
        return provider.begin_saving(workspace_id, known.provider_customer if known else "", return_url)
    except (ProviderUnreachable, ProviderRefused) as error:
        raise ProviderUnavailable from error


@transaction.atomic
def store_method(*, workspace_id: uuid.UUID, provider_name: str, method: SavedMethod) -> PaymentMethod:
    """Keep a method that the provider saved; the first is the default. The same again changes nothing.

    A removed one stays removed. Locks the credit account.
    """
    ledger.ensure_account(workspace_id=workspace_id)
    holds.lock_account(workspace_id=workspace_id)
    kept, _made = PaymentMethod.objects.get_or_create(
        provider=provider_name,
        provider_reference=method.reference,
        defaults={
            "workspace_id": workspace_id,
            "provider_customer": method.customer,
            "label": method.label,
            "is_default": default_method(workspace_id) is None,
        },
    )
    return kept


@transaction.atomic
def set_default(*, workspace_id: uuid.UUID, method_id: uuid.UUID) -> None:
    """Charge this method from now on. Locks the credit account. Raises NoPaymentMethod: it is not there."""
    ledger.ensure_account(workspace_id=workspace_id)
    holds.lock_account(workspace_id=workspace_id)
    if not saved_methods(workspace_id).filter(pk=method_id).exists():
        raise NoPaymentMethod
    saved_methods(workspace_id).filter(is_default=True).exclude(pk=method_id).update(is_default=False)
    PaymentMethod.objects.filter(pk=method_id).update(is_default=True)


def remove_method(*, workspace_id: uuid.UUID, method_id: uuid.UUID) -> None:
    """Forget a method here and at the provider. Without any left, the automatic top-up is off.

    Raises NoPaymentMethod: it is not there.
    """
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        holds.lock_account(workspace_id=workspace_id)
        method = saved_methods(workspace_id).filter(pk=method_id).first()
        if method is None:
            raise NoPaymentMethod
        PaymentMethod.objects.filter(pk=method_id).update(removed_at=Now(), is_default=False)
        rest = saved_methods(workspace_id).first()
        if rest is None:
            AutomaticTopUp.objects.filter(pk=workspace_id).update(is_on=False)
        elif method.is_default:
            PaymentMethod.objects.filter(pk=rest.pk).update(is_default=True)
    try:
        registry.provider(method.provider).forget_method(
            SavedMethod(method.provider_customer, method.provider_reference, method.label)
        )
    except (ProviderUnreachable, PaymentProviderUnknown):
        # Here it is never charged again; there it stays until somebody removes it.
        logger.warning("method_not_forgotten", extra={"method": method.pk, "provider": method.provider})
