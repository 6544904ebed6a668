"""Finding a customer by whatever an operator was told, and the rows of the list."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from django import forms
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership, Role, Workspace
from billing.models import CreditAccount, Plan, Subscription, UsageDay
from billing.models.ledger import default_time_zone
from billing.periods import month_at
from portal.console.search_bar import SearchBar, words_field
from portal.console.search_words import (
    any_of,
    cannot_be_stored,
    ids,
    keys_that_begin,
    known_uuid,
    people_with,
)
from tts.models import SynthesisJob

CUSTOMERS_PER_PAGE: Final = 50
ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"
OWING: Final = "owing"
STATES: Final = [(ACTIVE, _("Active")), (SUSPENDED, _("Suspended")), (OWING, _("Owes money"))]


class CustomerSearchForm(SearchBar):
    q = words_field(_("Name, e-mail address, id or API key"))
    state = forms.ChoiceField(label=_("State"), choices=[("", _("All states")), *STATES], required=False)
    plan = forms.ChoiceField(label=_("Plan"), required=False)
    before = forms.CharField(required=False, max_length=100)

    def __init__(self, *arguments: object, **keywords: object) -> None:
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]
        plans = Plan.objects.order_by("code").values_list("code", "name")
        self.fields["plan"].choices = [("", _("All plans")), *plans]  # type: ignore[attr-defined]

    @property
    def choice_names(self) -> tuple[str, ...]:
        return ("state", "plan")


@dataclass(frozen=True)
class CustomerRow:
    """One workspace. Amounts in micros; usage and jobs of the calendar month in its own time zone."""

    id: uuid.UUID
    name: str
    kind_label: str
    owner_email: str
    created_at: datetime
    plan_name: str
    currency: str
    available_micros: int
    owed_micros: int
    charged_micros: int
    gpu_ms: int
    jobs: int
    suspended: bool


def find_customers(form: CustomerSearchForm) -> QuerySet[Workspace]:
    """The workspaces that the form asks for, in no order yet."""
    workspaces = Workspace.objects.all()
    if form.query:
        workspaces = workspaces.filter(_meant(form.query))
    state = form.known("state")
    if state == SUSPENDED:
        workspaces = workspaces.filter(suspended_at__isnull=False)
    elif state == ACTIVE:
        workspaces = workspaces.filter(suspended_at__isnull=True)
    elif state == OWING:
        workspaces = workspaces.filter(
            Exists(CreditAccount.objects.filter(workspace_id=OuterRef("pk"), owed_micros__gt=0))
        )
    if plan := form.known("plan"):
        on_plan = Subscription.objects.filter(
            workspace_id=OuterRef("pk"), ends_at__isnull=True, plan_version__plan__code=plan
        )
        workspaces = workspaces.filter(Exists(on_plan))
    return workspaces


def _meant(query: str) -> Q:
    """Which workspaces the words mean. Some queries."""
    if cannot_be_stored(query):
        return Q(pk__in=[])
    if wanted := known_uuid(query):
        of_person = ids(Membership.objects.filter(user=wanted), "workspace_id")
        of_job = ids(SynthesisJob.objects.filter(pk=wanted), "workspace_id")
        return any_of({"pk": [wanted, *of_person, *of_job]})
    of_people = ids(Membership.objects.filter(user__in=people_with(query)), "workspace_id")
    if "@" in query:
        return any_of({"pk": of_people})
    return Q(name__icontains=query) | any_of({"pk": of_people, "api_keys": keys_that_begin(query)})


def customer_rows(workspaces: Sequence[Workspace], *, now: datetime) -> list[CustomerRow]:
    """What stands in the list about these. The number of queries does not depend on how many they are."""
    wanted = [workspace.pk for workspace in workspaces]
    accounts = {account.pk: account for account in CreditAccount.objects.filter(pk__in=wanted)}
    subscriptions = Subscription.objects.filter(workspace_id__in=wanted, ends_at__isnull=True)
    plans = {
        one.workspace_id: one.plan_version.plan.name
        for one in subscriptions.select_related("plan_version__plan")
    }
    owners: dict[uuid.UUID, str] = {}
    owning = Membership.objects.filter(workspace__in=wanted, role=Role.OWNER).select_related("user")
    for membership in owning.order_by("-created_at"):
        owners[membership.workspace_id] = membership.user.email
    zones = {pk: accounts[pk].time_zone if pk in accounts else default_time_zone() for pk in wanted}
    usage = _usage_of_months(wanted, now)
    jobs = _jobs_of_months(zones, now)
    rows = []
    for workspace in workspaces:
        account = accounts.get(workspace.pk) or CreditAccount(workspace_id=workspace.pk)
        month = month_at(now, zones[workspace.pk]).first_day
        charged, gpu_ms = usage.get((workspace.pk, month), (0, 0))
        rows.append(
            CustomerRow(
                id=workspace.pk,
                name=workspace.name,
                kind_label=workspace.get_kind_display(),
                owner_email=owners.get(workspace.pk, ""),
                created_at=workspace.created_at,
                plan_name=plans.get(workspace.pk, ""),
                currency=account.currency,
                available_micros=account.available_micros,
                owed_micros=account.owed_micros,
                charged_micros=charged,
                gpu_ms=gpu_ms,
                jobs=jobs.get(workspace.pk, 0),
                suspended=workspace.suspended_at is not None,
            )
        )
    return rows


def _usage_of_months(wanted: list[uuid.UUID], now: datetime) -> dict[tuple[uuid.UUID, date], tuple[int, int]]:
    """What was charged, less what was given back, and GPU-milliseconds by workspace and month."""
    # Of all time zones' months that it may be now, the earliest.
    since = month_at(now, "Pacific/Pago_Pago").first_day
    sums = (
        UsageDay.objects.filter(workspace_id__in=wanted, day__gte=since)
        .annotate(month=TruncMonth("day"))
        .values("workspace_id", "month")
        .annotate(charged=Sum("charged_micros") - Sum("refunded_micros"), gpu=Sum("gpu_ms"))
    )
    return {(row["workspace_id"], row["month"]): (row["charged"], row["gpu"]) for row in sums}


def _jobs_of_months(zones: dict[uuid.UUID, str], now: datetime) -> dict[uuid.UUID, int]:
    """How many jobs each workspace has submitted in its month. A query for each moment at which months began."""
    by_start: dict[datetime, list[uuid.UUID]] = {}
    for workspace_id, zone in zones.items():
        by_start.setdefault(month_at(now, zone).start, []).append(workspace_id)
    counts: dict[uuid.UUID, int] = {}
    for start, workspaces in by_start.items():
        found = SynthesisJob.objects.filter(workspace__in=workspaces, created_at__gte=start)
        for one in found.values("workspace_id").annotate(many=Count("pk")):
            counts[one["workspace_id"]] = one["many"]
    return counts
