"""Setting prices."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from billing.errors import PriceInvalid
from billing.models import PriceVersion
from billing.pricing import check_device_rates
from portal.lib.clock import database_now

# Where an operator begins who has set no price, in micros of a yuan for one GPU-second: 0.012, 0.008 and
# 0.004 yuan. The operator sets their own in a new version.
FIRST_INTERACTIVE_MICROS = 12_000
FIRST_STANDARD_MICROS = 8_000
FIRST_BATCH_MICROS = 4_000


def ensure_first_price() -> None:
    """Put a first price version in force where there is none at all. Later calls change nothing."""
    if not PriceVersion.objects.exists():
        # The number is unique, so two calls at once make one.
        PriceVersion.objects.get_or_create(
            number=1,
            defaults={
                "currency": "CNY",
                "interactive_gpu_second_micros": FIRST_INTERACTIVE_MICROS,
                "standard_gpu_second_micros": FIRST_STANDARD_MICROS,
                "batch_gpu_second_micros": FIRST_BATCH_MICROS,
                "effective_at": Now(),
            },
        )


@transaction.atomic
def add_price_version(*, version: PriceVersion) -> PriceVersion:
    """Store the next version of the price, and return it with its number. `effective_at` of None: from now on.

    Those before it are kept as they are; a job keeps the price that it was quoted. Locks the first version's row.

    Raises:
        PriceInvalid: an amount below zero, no rate for a class, or in force in the past. Nothing was changed.
    """
    now = database_now()
    version.effective_at = version.effective_at or now
    general = (
        version.interactive_gpu_second_micros,
        version.standard_gpu_second_micros,
        version.batch_gpu_second_micros,
        version.minimum_charge_micros,
    )
    if min(general) < 0 or version.effective_at < now:
        raise PriceInvalid
    try:
        check_device_rates(version.device_class_rates)
    except ValueError as error:
        raise PriceInvalid from error
    # Whoever comes at the same time waits here, and finds the number taken.
    PriceVersion.objects.select_for_update().order_by("number").first()
    newest = PriceVersion.objects.aggregate(newest=Max("number"))["newest"] or 0
    version.number = newest + 1
    version.save(force_insert=True)
    return version
