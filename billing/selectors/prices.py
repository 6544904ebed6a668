"""Which price is in force."""

from __future__ import annotations

from django.db.models.functions import Now

from billing.errors import NoPrice
from billing.models import PriceVersion
from billing.pricing import Rate


def current_price() -> PriceVersion:
    """The newest price version in force. Raises NoPrice when the operator has set none."""
    price = PriceVersion.objects.filter(effective_at__lte=Now()).order_by("-effective_at", "-number").first()
    if price is None:
        raise NoPrice
    return price


def rate_for(*, price: PriceVersion, job_class: str) -> Rate:
    micros: int = getattr(price, f"{job_class}_gpu_second_micros")
    return Rate(gpu_second_micros=micros, currency=price.currency)
