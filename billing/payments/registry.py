"""Which providers there are, and which of them are offered here."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.utils.module_loading import import_string

from billing.errors import PaymentProviderUnknown
from billing.payments.base import PaymentProvider

# By path: a provider's library is loaded where that provider is used.
PROVIDERS: Final = {
    "stripe": "billing.payments.stripe.StripeProvider",
    "alipay": "billing.payments.alipay.AlipayProvider",
    "bank_transfer": "billing.payments.recorded.BankTransfer",
    "cash": "billing.payments.recorded.Cash",
    "test": "billing.payments.pretend.PretendProvider",
}
RECORDED: Final = ("bank_transfer", "cash")


def provider(name: str) -> PaymentProvider:
    """The provider of that name, also where it is not offered to anybody any more: old payments may need it.

    Raises PaymentProviderUnknown: there is none, or its keys are not set here.
    """
    if name not in PROVIDERS or (name == "test" and not settings.PAYMENTS["TEST_PROVIDER"]):
        raise PaymentProviderUnknown
    made: PaymentProvider = import_string(PROVIDERS[name])()
    return made


def offered_names() -> list[str]:
    """The providers that customers may choose, in the operator's order."""
    return [
        name
        for name in settings.PAYMENTS["PROVIDERS"]
        if name in PROVIDERS
        and name not in RECORDED
        and (name != "test" or settings.PAYMENTS["TEST_PROVIDER"])
    ]


def offered_provider(name: str) -> PaymentProvider:
    """A provider that customers may choose. Raises PaymentProviderUnknown."""
    if name not in offered_names():
        raise PaymentProviderUnknown
    return provider(name)


def offered() -> list[PaymentProvider]:
    """The providers that customers may choose, for the pages that list them."""
    return [provider(name) for name in offered_names()]
