"""Amounts that can be paid: whole coins of a currency, within limits. Pure but for the limits' settings."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from django.conf import settings

from billing.errors import AmountInvalid, AmountNotPositive, AmountOutOfRange, AmountTooPrecise
from portal.lib.display import money_exact
from portal.lib.money import MICROS_PER_UNIT

# ISO 4217: these have no smaller coin than their unit; the others that providers here take have hundredths.
WITHOUT_HUNDREDTHS: Final = frozenset({"CLP", "JPY", "KRW", "VND"})
# No amount of money is written longer, and none that is could be paid.
AMOUNT_CHARACTERS = 20


def coin_micros(currency: str) -> int:
    """The smallest coin of the currency, in micros."""
    return MICROS_PER_UNIT if currency.upper() in WITHOUT_HUNDREDTHS else MICROS_PER_UNIT // 100


def coins_of(amount_micros: int, currency: str) -> int:
    """The amount as a number of the currency's smallest coins, as providers count.

    Raises AmountTooPrecise where that is no whole number: money is never rounded on its way.
    """
    coins, rest = divmod(amount_micros, coin_micros(currency))
    if rest:
        raise AmountTooPrecise(currency=currency)
    return coins


def micros_of_coins(coins: int, currency: str) -> int:
    """So many of the currency's smallest coins, in micros."""
    return coins * coin_micros(currency)


def amount_from_text(text: str, currency: str) -> int:
    """What a person wrote as an amount, such as "12.50", in micros.

    Raises:
        AmountInvalid: not a number, or longer than any amount is.
        AmountTooPrecise: parts of the smallest coin.
    """
    written = text.strip()
    if not written or len(written) > AMOUNT_CHARACTERS or not written.isascii():
        raise AmountInvalid
    try:
        amount = Decimal(written)
    except InvalidOperation as error:
        raise AmountInvalid from error
    # "1e999999" would make a number that fills the memory.
    if not amount.is_finite() or abs(amount.adjusted()) > AMOUNT_CHARACTERS:
        raise AmountInvalid
    micros = amount * MICROS_PER_UNIT
    if micros != micros.to_integral_value():
        raise AmountTooPrecise(currency=currency)
    coins_of(int(micros), currency)
    return int(micros)


def check_payable(amount_micros: int, currency: str) -> int:
    """Return the amount when one payment can be of it.

    Raises:
        AmountInvalid: not a whole number of micros.
        AmountNotPositive, AmountTooPrecise, AmountOutOfRange
    """
    # A float, a string or a truth value that came this far would be compared and stored without a word.
    if type(amount_micros) is not int:
        raise AmountInvalid
    if amount_micros <= 0:
        raise AmountNotPositive
    least = settings.PAYMENTS["TOP_UP_MINIMUM"] * MICROS_PER_UNIT
    most = settings.PAYMENTS["TOP_UP_MAXIMUM"] * MICROS_PER_UNIT
    if not least <= amount_micros <= most:
        raise AmountOutOfRange(least=money_exact(least, currency), most=money_exact(most, currency))
    coins_of(amount_micros, currency)
    return amount_micros
