"""What a new price changes, for whom, and what last month would have cost at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db.models import Sum
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from billing.models import PlanVersion, PriceVersion, UsageDay
from billing.periods import Period, month_at, month_before
from billing.pricing import JOB_CLASSES, price_gpu_ms
from billing.selectors.prices import rate_for
from portal.console.plan_rows import subscribers_by_version, workspaces_without_plan
from portal.console.price_form import RATE_LABELS, known_device_classes

JOB_CLASS_LABELS: Final[dict[str, str | Promise]] = dict(RATE_LABELS)


@dataclass(frozen=True)
class RateChange:
    """A rate before and after; `percent` is None where there was none or it was zero. `device_class` is empty for the
    general rate."""

    device_class: str
    job_class: str
    label: str | Promise
    before_micros: int | None
    after_micros: int

    @property
    def percent(self) -> float | None:
        if not self.before_micros:
            return None
        return (self.after_micros - self.before_micros) * 100 / self.before_micros

    @property
    def percent_text(self) -> str:
        if self.before_micros == self.after_micros:
            return "±0 %"
        percent = self.percent
        return "–" if percent is None else f"{percent:+.1f} %".replace("-", "−")


@dataclass(frozen=True)
class UsageRow:
    """Last month's usage of one class: what it was priced at, and what it would be at the new price."""

    device_class: str
    label: str | Promise
    gpu_ms: int
    before_micros: int
    after_micros: int


@dataclass(frozen=True)
class Preview:
    rates: list[RateChange]
    minimum: RateChange
    plans: list[tuple[str | Promise, int]]
    month: Period
    usage: list[UsageRow]

    @property
    def before_micros(self) -> int:
        return sum(row.before_micros for row in self.usage)

    @property
    def after_micros(self) -> int:
        return sum(row.after_micros for row in self.usage)

    @property
    def total(self) -> RateChange:
        """The month as a whole, for its percent."""
        return RateChange("", "", "", self.before_micros, self.after_micros)


def all_versions() -> list[PriceVersion]:
    """Every price that was ever set, the newest first."""
    return list(PriceVersion.objects.order_by("-number"))


def preview(*, version: PriceVersion, before: PriceVersion | None, now: datetime) -> Preview:
    """What the version changes of the price in force. Some queries, whose number depends on nothing."""
    month = month_before(month_at(now, settings.TIME_ZONE))
    return Preview(
        rates=rate_changes(version, before),
        minimum=RateChange(
            "",
            "",
            _("Minimum charge"),
            before.minimum_charge_micros if before is not None else None,
            version.minimum_charge_micros,
        ),
        plans=_workspaces_by_plan(),
        month=month,
        usage=usage_rows(version, month),
    )


def rate_changes(version: PriceVersion, before: PriceVersion | None) -> list[RateChange]:
    """The general rates, then those of every class of device that has its own, before or after, or is there."""
    named = {*version.device_class_rates, *(before.device_class_rates if before is not None else {})}
    return [
        RateChange(
            device_class=device_class,
            job_class=job_class,
            label=JOB_CLASS_LABELS[job_class],
            before_micros=_rate(before, job_class, device_class) if before is not None else None,
            after_micros=_rate(version, job_class, device_class),
        )
        for device_class in ["", *sorted(named | set(known_device_classes()))]
        for job_class in JOB_CLASSES
    ]


def _rate(price: PriceVersion, job_class: str, device_class: str) -> int:
    return rate_for(price=price, job_class=job_class, device_class=device_class).gpu_second_micros


def _workspaces_by_plan() -> list[tuple[str | Promise, int]]:
    on_version = subscribers_by_version()
    by_plan: dict[str, int] = {}
    versions = PlanVersion.objects.filter(pk__in=on_version).select_related("plan")
    for version in versions.order_by("plan__code"):
        by_plan[version.plan.name] = by_plan.get(version.plan.name, 0) + on_version[version.pk]
    rows: list[tuple[str | Promise, int]] = list(by_plan.items())
    without = workspaces_without_plan()
    return [*rows, (_("without a plan"), without)] if without else rows


def usage_rows(version: PriceVersion, month: Period) -> list[UsageRow]:
    """The month's billable usage by class of device and job, from the same sums as invoices. Minimum charges are left
    out: they belong to single jobs."""
    sums = (
        UsageDay.objects.filter(day__gte=month.first_day, day__lte=month.last_day, billable=True)
        .values("device_class", "job_class")
        .annotate(gpu=Sum("gpu_ms"), rated=Sum("rated_micros"))
        .order_by("device_class", "job_class")
    )
    return [
        UsageRow(
            device_class=row["device_class"],
            label=JOB_CLASS_LABELS.get(row["job_class"], row["job_class"]),
            gpu_ms=row["gpu"],
            before_micros=row["rated"],
            after_micros=price_gpu_ms(
                gpu_ms=row["gpu"],
                rate=rate_for(price=version, job_class=row["job_class"], device_class=row["device_class"]),
            ),
        )
        for row in sums
    ]
