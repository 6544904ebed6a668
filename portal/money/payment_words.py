"""Why a payment failed, in words: what providers and we call it, as far as a customer can do something about it."""

from __future__ import annotations

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

_DECLINED: Final = _("The bank declined it. Try another card, or ask your bank.")
# Stripe's codes of errors and declines, and ours (billing.payments, billing.services.payment_asking).
_WORDS: Final[dict[str, str | Promise]] = {
    "card_declined": _DECLINED,
    "declined": _DECLINED,
    "generic_decline": _DECLINED,
    "payment_intent_payment_attempt_failed": _DECLINED,
    "insufficient_funds": _("There is not enough money on the card. Try another one."),
    "expired_card": _("The card has expired. Save another one."),
    "incorrect_cvc": _("The card’s security code is wrong. Save the card once more."),
    "processing_error": _("The bank could not work on it. Try again in some minutes."),
    "authentication_required": _("The bank wants you to confirm it yourself: pay on the provider’s page."),
    "requires_action": _("The bank wants you to confirm it yourself: pay on the provider’s page."),
    "never_arrived": _("The payment provider never got it. Try again."),
    "not_paid": _("It was not paid on the provider’s page."),
}


def failure_words(code: str) -> str | Promise:
    """The reason as a sentence; the provider's own code where there is none."""
    return _WORDS.get(code, code)
