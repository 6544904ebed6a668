"""What the portal was asked, for a month, and how often, for good. Never a text, a key or a query string."""

from __future__ import annotations

from django.db import models


class RequestLog(models.Model):
    """One answered request of the API, or of a page that makes or changes something.

    People and workspaces by value: a line outlives them, and storing one asks no other table.
    """

    created_at = models.DateTimeField()
    workspace_id = models.UUIDField(null=True)
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    method = models.CharField(max_length=10)
    # The pattern of the address, such as "/api/v1/jobs/{job_id}": no ids, so that lines can be grouped.
    route = models.CharField(max_length=120)
    status = models.PositiveSmallIntegerField()
    # Until the answer was complete; of a stream, until it was closed.
    duration_ms = models.PositiveIntegerField()
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=40)
    # Of a problem: its stable code.
    code = models.CharField(max_length=60, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="request_newest"),
            models.Index(fields=["workspace_id", "-created_at", "-id"], name="request_by_workspace"),
            models.Index(fields=["request_id"], name="request_by_its_id"),
        ]


class CounterTotal(models.Model):
    """One number that only grows, over all processes and restarts. `labels` is canonical JSON."""

    family = models.CharField(max_length=40)
    labels = models.CharField(max_length=300)
    value = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["family", "labels"], name="counter_total_once")]


class CounterMark(models.Model):
    """Up to which moment rows were counted into their totals."""

    name = models.CharField(primary_key=True, max_length=40)
    counted_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
