"""What a GPU-second costs. A version is never changed once it is in force: a trigger says so."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class PriceVersion(models.Model):
    number = models.PositiveIntegerField(unique=True)
    currency = models.CharField(max_length=3, default="CNY")
    # Micros of the currency for one GPU-second, by class of job, on every device that has no price of its own below.
    interactive_gpu_second_micros = models.BigIntegerField()
    standard_gpu_second_micros = models.BigIntegerField()
    batch_gpu_second_micros = models.BigIntegerField()
    # {"h200": {"interactive": 90000, "standard": 60000, "batch": 30000}}; billing.pricing.check_device_rates.
    device_class_rates = models.JSONField(default=dict, blank=True)
    # What a job costs at least, once anything of it was spoken.
    minimum_charge_micros = models.BigIntegerField(default=0, db_default=0)
    effective_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["-effective_at"], name="price_newest_first")]
        constraints = [
            models.CheckConstraint(
                condition=Q(interactive_gpu_second_micros__gte=0)
                & Q(standard_gpu_second_micros__gte=0)
                & Q(batch_gpu_second_micros__gte=0)
                & Q(minimum_charge_micros__gte=0),
                name="price_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number}"
