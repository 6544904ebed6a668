"""Plans and their versions as the console lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import Count
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import Workspace
from billing.models import Plan, PlanVersion, Subscription
from billing.selectors.plans import newest_version
from portal.lib.display import bytes_text, count_text, money_exact
from portal.lib.errors import NotFound

# The limits in the order of the pages; None is the platform's own.
LIMITS: Final[tuple[tuple[str, str | Promise], ...]] = (
    ("requests_per_minute", _("Requests a minute")),
    ("characters_per_day", _("Characters in 24 hours")),
    ("queued_jobs", _("Jobs at once")),
    ("running_segments", _("Segments spoken at once")),
    ("voices", _("Voices")),
    ("storage_bytes", _("Storage")),
    ("retention_days", _("Days that audio is kept")),
    ("longest_job_characters", _("Characters of the longest job")),
)
TERMS: Final[tuple[tuple[str, str | Promise], ...]] = (
    ("monthly_fee_micros", _("Monthly fee")),
    ("included_gpu_seconds", _("Included GPU-seconds")),
    ("fair_share_weight", _("Weight in the queue")),
    *LIMITS,
)


def term_text(name: str, version: PlanVersion) -> str:
    """One of a version's terms in words."""
    value: int | None = getattr(version, name)
    if value is None:
        return gettext("the platform’s")
    if name == "monthly_fee_micros":
        return money_exact(value, version.currency)
    return bytes_text(value) if name == "storage_bytes" else count_text(value)


def find_plan(code: str) -> Plan:
    """Raises NotFound."""
    plan = Plan.objects.filter(code=code).first()
    if plan is None:
        raise NotFound
    return plan


def all_plans() -> list[PlanRow]:
    """Every plan with its versions, by its code."""
    return plan_rows(Plan.objects.order_by("code"))


def versions_in_force() -> list[PlanVersion]:
    """The version in force of every plan that has one, by the plan's code."""
    versions = [newest_version(plan) for plan in Plan.objects.order_by("code")]
    return [version for version in versions if version is not None]


@dataclass(frozen=True)
class Difference:
    """One of a plan's terms, before and after."""

    label: str | Promise
    before: str
    after: str
    changes: bool


def differences(before: PlanVersion | None, after: PlanVersion) -> list[Difference]:
    """Every term; of a new plan there is nothing before."""
    found = []
    for name, label in TERMS:
        old = term_text(name, before) if before is not None else "–"
        new = term_text(name, after)
        found.append(Difference(label, old, new, changes=old != new))
    return found


@dataclass(frozen=True)
class VersionRow:
    version: PlanVersion
    subscribers: int
    terms: list[str]
    in_force: bool


@dataclass(frozen=True)
class PlanRow:
    """A plan with its versions, the newest first; `subscribers` of all of them."""

    plan: Plan
    subscribers: int
    versions: list[VersionRow]


def subscribers_by_version() -> dict[int, int]:
    """How many workspaces are on each version now."""
    open_now = Subscription.objects.filter(ends_at__isnull=True).values("plan_version_id")
    return {row["plan_version_id"]: row["many"] for row in open_now.annotate(many=Count("pk"))}


def workspaces_without_plan() -> int:
    with_plan = Subscription.objects.filter(ends_at__isnull=True).count()
    return max(0, Workspace.objects.count() - with_plan)


def plan_rows(plans: Iterable[Plan]) -> list[PlanRow]:
    """The plans as they stand, in the order given."""
    on_version = subscribers_by_version()
    rows = []
    for plan in plans:
        newest = newest_version(plan)
        versions = [
            VersionRow(
                version=version,
                subscribers=on_version.get(version.pk, 0),
                terms=[term_text(name, version) for name, _label in TERMS],
                in_force=newest is not None and version.pk == newest.pk,
            )
            for version in plan.versions.order_by("-number")
        ]
        rows.append(PlanRow(plan, sum(version.subscribers for version in versions), versions))
    return rows
