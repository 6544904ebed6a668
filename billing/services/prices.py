"""Setting prices."""

from __future__ import annotations

from django.db.models.functions import Now

from billing.models import PriceVersion

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
