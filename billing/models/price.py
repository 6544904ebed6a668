"""What a GPU-second costs. A version is never changed once a job was quoted with it."""

from __future__ import annotations

from django.db import models


class PriceVersion(models.Model):
    number = models.PositiveIntegerField(unique=True)
    currency = models.CharField(max_length=3, default="CNY")
    # Micros of the currency for one GPU-second, by class of job.
    interactive_gpu_second_micros = models.BigIntegerField()
    standard_gpu_second_micros = models.BigIntegerField()
    batch_gpu_second_micros = models.BigIntegerField()
    effective_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["-effective_at"], name="price_newest_first")]

    def __str__(self) -> str:
        return f"#{self.number}"
