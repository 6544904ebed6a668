"""The counters and virtual clocks from which the next segment is chosen. The rule: tts.services.fair_share.

`queued`, `queued_estimate_gpu_ms`, `running` and `workspace_running` are kept by a trigger on the segments' table,
so that no path by which a segment changes its state can forget them. Tags are device milliseconds × 1000 / weight.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from accounts.models import Workspace
from tts.states import JobClass


class FairShareClass(models.Model):
    """One row for each class. Every decision locks all of them, so that decisions follow one another."""

    job_class = models.CharField(primary_key=True, max_length=12, choices=JobClass.choices)
    weight = models.PositiveSmallIntegerField()
    # A queue's head that has waited this long goes first, though at most every fourth time.
    override_age_s = models.PositiveIntegerField()
    # The class's own tag among the classes, and the clock of the workspaces within it.
    start_tag = models.BigIntegerField(default=0)
    virtual_time = models.BigIntegerField(default=0)
    # Whether it had work at the last decision: a class that comes back starts at the pool's clock.
    active = models.BooleanField(default=False)
    picks_since_override = models.PositiveIntegerField(default=0)
    # No head of its queues is that old before then: not looked for until it has come.
    overdue_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.job_class


class FairShareQueue(models.Model):
    """What waits and what is being spoken of one workspace in one class."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    job_class = models.CharField(max_length=12, choices=JobClass.choices)
    start_tag = models.BigIntegerField(default=0)
    queued = models.IntegerField(default=0)
    queued_estimate_gpu_ms = models.BigIntegerField(default=0)
    running = models.IntegerField(default=0)
    # Over all classes of the workspace; it may take more work while this is below the limit.
    workspace_running = models.IntegerField(default=0)
    running_limit = models.IntegerField(default=2**31 - 1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "job_class"], name="fair_share_queue_once"),
        ]
        indexes = [
            models.Index(
                fields=["job_class", "start_tag", "id"],
                condition=Q(queued__gt=0, workspace_running__lt=F("running_limit")),
                name="fair_share_next",
            ),
            # Few or none: those that are passed over when the oldest is looked for.
            models.Index(
                fields=["job_class"],
                condition=Q(queued__gt=0, workspace_running__gte=F("running_limit")),
                name="fair_share_at_limit",
            ),
        ]
