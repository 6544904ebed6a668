"""How long customers waited: p50, p95 and p99 over the last hour and the last 24 hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import Aggregate, Count, DurationField, ExpressionWrapper, F, Q
from django.db.models.expressions import Combinable
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.console.selectors import milliseconds
from tts.models import SynthesisJob
from tts.states import JobClass, JobState

WINDOWS: dict[str, tuple[timedelta, str | Promise]] = {
    "hour": (timedelta(hours=1), _("last hour")),
    "day": (timedelta(hours=24), _("last 24 hours")),
}
# Of a job's times: from its creation to its start, to its first audio, and to its end when it succeeded.
MEASURES: dict[str, tuple[str, Q]] = {
    "wait": ("started_at", Q(started_at__isnull=False)),
    "first_audio": ("first_audio_at", Q(first_audio_at__isnull=False)),
    "total": ("finished_at", Q(state=JobState.SUCCEEDED)),
}


ALL_CLASSES = ""
# By class: count, p50, p95 and p99, by window and measure. Plain enough to be kept as JSON.
Measured = dict[str, dict[str, list[int | None]]]


class Percentiles(Aggregate):
    """PostgreSQL's percentile_cont for p50, p95 and p99: all from one sort, NULL without rows."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(DurationField())


@dataclass(frozen=True)
class Figure:
    """One measure: the percentiles of `count` jobs, None where there are none."""

    count: int
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None


@dataclass(frozen=True)
class LatencyRow:
    """One class (or all, with an empty `job_class`) over one window."""

    job_class: str
    label: str | Promise
    window: str
    window_label: str | Promise
    wait: Figure
    first_audio: Figure
    total: Figure


def _aggregates(now: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for window, (length, _label) in WINDOWS.items():
        within = Q(created_at__gte=now - length)
        for measure, (moment, happened) in MEASURES.items():
            duration: Combinable = ExpressionWrapper(
                F(moment) - F("created_at"), output_field=DurationField()
            )
            found[f"{window}_{measure}"] = Percentiles(duration, filter=within & happened)
            found[f"{window}_{measure}_count"] = Count("pk", filter=within & happened)
    return found


def _measured(values: Mapping[str, Any]) -> dict[str, list[int | None]]:
    """Count, p50, p95 and p99 in ms, by window and measure."""
    found = {}
    for window in WINDOWS:
        for measure in MEASURES:
            name = f"{window}_{measure}"
            percentiles = values[name] or (None, None, None)
            found[name] = [values[f"{name}_count"], *map(milliseconds, percentiles)]
    return found


def measure_latency(*, now: datetime) -> Measured:
    """All jobs together and each class that has any, over both windows by when they were submitted. Two queries."""
    longest = max(length for length, _label in WINDOWS.values())
    jobs = SynthesisJob.objects.filter(created_at__gte=now - longest).order_by()
    aggregates = _aggregates(now)
    by_class = {
        row["job_class"]: _measured({**row}) for row in jobs.values("job_class").annotate(**aggregates)
    }
    return {ALL_CLASSES: _measured(jobs.aggregate(**aggregates)), **by_class}


def latency_rows(measured: Measured) -> list[LatencyRow]:
    """What was measured as rows: all classes first, then each class, also those without jobs."""
    labels: dict[str, str | Promise] = {ALL_CLASSES: _("All classes")}
    labels |= {job_class.value: job_class.label for job_class in JobClass}
    return [
        LatencyRow(
            job_class=job_class,
            label=label,
            window=window,
            window_label=window_label,
            wait=_figure(measured, job_class, f"{window}_wait"),
            first_audio=_figure(measured, job_class, f"{window}_first_audio"),
            total=_figure(measured, job_class, f"{window}_total"),
        )
        for job_class, label in labels.items()
        for window, (_length, window_label) in WINDOWS.items()
    ]


def _figure(measured: Measured, job_class: str, name: str) -> Figure:
    count, p50_ms, p95_ms, p99_ms = measured.get(job_class, {}).get(name, [0, None, None, None])
    return Figure(count=count or 0, p50_ms=p50_ms, p95_ms=p95_ms, p99_ms=p99_ms)
