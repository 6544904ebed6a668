"""Which price is in force."""

from __future__ import annotations

from collections.abc import Iterable

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


def rate_for(*, price: PriceVersion, job_class: str, device_class: str = "") -> Rate:
    """The rate of a class of job on a class of device; the price's general one where the device has none of its own."""
    own = price.device_class_rates.get(device_class)
    micros: int = getattr(price, f"{job_class}_gpu_second_micros") if own is None else own[job_class]
    return Rate(gpu_second_micros=micros, currency=price.currency)


def highest_rate(*, price: PriceVersion, job_class: str, device_classes: Iterable[str]) -> Rate:
    """The rate on the dearest of these devices, the general one where there are none: what a quote reckons with, before
    it is known which device will speak."""
    rates = [rate_for(price=price, job_class=job_class, device_class=name) for name in device_classes]
    return max(
        rates, key=lambda rate: rate.gpu_second_micros, default=rate_for(price=price, job_class=job_class)
    )
