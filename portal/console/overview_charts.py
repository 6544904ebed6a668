"""The overview's charts, each with the finding as its title."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.charts import (
    Chart,
    Series,
    bar_chart,
    line_chart,
    percent_text,
    seconds_axis,
)
from portal.console.trends import FailuresByKind, JobsByMinute, Latencies, PoolShare

MEASURE_NAMES: dict[str, str | Promise] = {
    "wait": _("wait for a device"),
    "first_audio": _("first audio"),
}


def overview_charts(*, now: datetime) -> list[Chart]:
    """All of them, in the order of the page."""
    return [
        pool_chart(PoolShare(now=now)),
        jobs_chart(JobsByMinute(now=now)),
        *latency_charts(Latencies(now=now)),
        failures_chart(FailuresByKind(now=now)),
    ]


def _csv(chart_id: str) -> str:
    return f"{reverse('console')}?csv={chart_id}"


def pool_chart(share: PoolShare) -> Chart:
    busy = share.total_percent(share.busy)
    failed = share.total_percent(share.failed)
    if busy is None or failed is None:
        title = gettext("No device was there in the last 24 hours")
    else:
        title = gettext("Busy for %(busy)s of the last 24 hours, failed work took %(failed)s") % {
            "busy": percent_text(busy),
            "failed": percent_text(failed),
        }
    return bar_chart(
        chart_id="pool",
        title=title,
        unit=_("share of the slots’ time, by half-hour"),
        moments=share.moments,
        series=[
            Series(_("busy"), "accent", share.percent(share.busy)),
            Series(_("failed"), "bad", share.percent(share.failed)),
            Series(_("idle"), "idle", share.percent(share.idle)),
        ],
        value_text=percent_text,
        top=100,
        csv_address=_csv("pool"),
    )


def jobs_chart(jobs: JobsByMinute) -> Chart:
    failed = round(sum(jobs.failed))
    total = round(sum(jobs.others)) + failed
    values = {"total": total, "failed": failed}
    return bar_chart(
        chart_id="jobs",
        title=gettext("Jobs of the last hour: %(total)d, of which failed: %(failed)d") % values,
        unit=_("jobs, by the minute of their submission"),
        moments=jobs.moments,
        series=[
            Series(_("failed"), "bad", jobs.failed),
            Series(_("all others"), "accent", jobs.others),
        ],
        csv_address=_csv("jobs"),
    )


def latency_charts(latencies: Latencies) -> list[Chart]:
    """Two charts for each class that had jobs."""
    charts = []
    for job_class in latencies.classes():
        for measure in latencies.MEASURES:
            p50, p95, p99 = latencies.lines(job_class, measure)
            known = [value for value in p95 if value is not None]
            chart_id = f"{measure}-{job_class.value}"
            values = {"class": job_class.label, "measure": MEASURE_NAMES[measure]}
            if known:
                title = gettext("%(class)s, %(measure)s: p95 lately %(now)s, at worst %(worst)s") % {
                    **values,
                    "now": seconds_axis(known[-1]),
                    "worst": seconds_axis(max(known)),
                }
            else:
                title = gettext("%(class)s, %(measure)s: nothing yet") % values
            charts.append(
                line_chart(
                    chart_id=chart_id,
                    title=title,
                    unit=_("seconds from the submission, by the hour of it"),
                    moments=latencies.moments,
                    series=[
                        Series("p50", "accent", p50),
                        Series("p95", "live", p95),
                        Series("p99", "warn", p99),
                    ],
                    value_text=seconds_axis,
                    csv_address=_csv(chart_id),
                )
            )
    return charts


def failures_chart(failures: FailuresByKind) -> Chart:
    if failures.kinds:
        title = gettext("Most failed attempts of the last 24 hours: %(code)s, %(count)d of %(total)d") % {
            "code": failures.kinds[0][0] or "–",
            "count": round(sum(failures.kinds[0][1])),
            "total": failures.total,
        }
    else:
        title = gettext("No attempt failed in the last 24 hours")
    tones = ("bad", "warn", "live", "accent")
    series = [
        Series(code or "–", tone, values) for (code, values), tone in zip(failures.kinds, tones, strict=False)
    ]
    if failures.rest is not None:
        series.append(Series(_("others"), "idle", failures.rest))
    return bar_chart(
        chart_id="failed-attempts",
        title=title,
        unit=_("attempts that failed, by hour"),
        moments=failures.moments,
        series=series,
        csv_address=_csv("failed-attempts"),
    )
