"""Who is billed, when they are told that credit runs out, and in which zone their days begin."""

from __future__ import annotations

import uuid
import zoneinfo
from dataclasses import asdict, dataclass
from functools import cache

from django.db import connection, transaction

from billing.errors import LowBalanceInvalid, TimeZoneUnknown
from billing.models import BillingProfile, CreditAccount
from billing.services import ledger
from billing.services.budgets import MOST_MICROS


@dataclass(frozen=True)
class BilledParty:
    """What an invoice says of who is billed. Any of it may be empty."""

    name: str
    address: str
    tax_number: str
    email: str


def set_billed_party(*, workspace_id: uuid.UUID, party: BilledParty) -> None:
    """Keep who is billed from now on; final invoices say what they said. Other settings stay as they are."""
    BillingProfile.objects.update_or_create(pk=workspace_id, defaults=asdict(party))


def set_low_balance_notice(*, workspace_id: uuid.UUID, below_micros: int | None) -> None:
    """Tell people once when less than that is left; None: never.

    Raises LowBalanceInvalid. Nothing was changed then.
    """
    if below_micros is not None and not 0 < below_micros <= MOST_MICROS:
        raise LowBalanceInvalid
    BillingProfile.objects.update_or_create(pk=workspace_id, defaults={"low_balance_micros": below_micros})


@transaction.atomic
def set_time_zone(*, workspace_id: uuid.UUID, time_zone: str) -> None:
    """Begin the workspace's days and months in that zone from now on. What is dated already keeps its day.

    Locks the credit account. Raises TimeZoneUnknown: no name of the time zone database. Nothing was changed then.
    """
    if time_zone not in time_zones() or not _database_knows(time_zone):
        raise TimeZoneUnknown
    ledger.ensure_account(workspace_id=workspace_id)
    CreditAccount.objects.filter(pk=workspace_id).update(time_zone=time_zone)


def _database_knows(time_zone: str) -> bool:
    """Usage is dated by the database, whose list of zones may be older than Python's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = %s)", [time_zone])
        known: bool = cursor.fetchone()[0]
    return known


@cache
def time_zones() -> list[str]:
    """The zones that people may choose: those of places, and UTC."""
    places = (
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    )
    known = zoneinfo.available_timezones()
    return ["UTC", *sorted(name for name in known if name.partition("/")[0] in places and "/" in name)]
