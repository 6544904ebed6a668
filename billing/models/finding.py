"""What the nightly reconciliation found: one row per run, and per difference."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Reconciliation(models.Model):
    """One run over the books. `day` None: over everything."""

    day = models.DateField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    # {"transactions": 1234, …}: how many of each were looked at.
    counts = models.JSONField(default=dict)
    differences = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["-started_at"], name="reconciliation_newest")]


class Difference(models.Model):
    """Something that does not add up: one row from the run that found it first until one no longer does, and kept then.
    An alert while it stands and no operator has said why."""

    reconciliation = models.ForeignKey(Reconciliation, on_delete=models.CASCADE, related_name="found")
    # The last run that found it; None: it is the first.
    last_found_by = models.ForeignKey(Reconciliation, on_delete=models.CASCADE, related_name="+", null=True)
    check_name = models.CharField(max_length=40)
    subject = models.CharField(max_length=120)
    expected = models.BigIntegerField()
    actual = models.BigIntegerField()
    explained_at = models.DateTimeField(null=True)
    explanation = models.CharField(max_length=300, blank=True)
    # When a run that looked for it found it no more.
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["check_name", "subject"],
                condition=Q(gone_at__isnull=True),
                name="difference_stands_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["check_name"],
                condition=Q(explained_at__isnull=True, gone_at__isnull=True),
                name="difference_open",
            ),
        ]
