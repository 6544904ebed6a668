"""A model on trial: which part of the traffic goes to the devices that have it."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

WHOLE = 10_000


class ModelShare(models.Model):
    """`share` in parts of 10,000 of the jobs. An engine without a row is the pool's own.

    Devices whose engine has a row speak the jobs that drew it, and all others only while no other device is ready.
    """

    engine = models.CharField(max_length=30, primary_key=True)
    share = models.PositiveSmallIntegerField(validators=[MinValueValidator(0), MaxValueValidator(WHOLE)])
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(share__lte=WHOLE), name="model_share_is_a_part")]

    def __str__(self) -> str:
        return f"{self.engine}: {self.share / 100:g} %"
