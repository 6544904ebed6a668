"""The log of all customers: requests and attempts, filtered."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiKey, User, Workspace
from portal.console.job_search import MAX_QUERY_CHARACTERS, DeviceField
from portal.logs.filters import LogForm
from portal.logs.models import RequestLog
from portal.logs.selectors import between, with_all
from tts.models import Attempt
from tts.states import AttemptState

# Of people and workspaces that a word may mean; a log is asked for one of them.
MEANT_AT_MOST: Final = 200
ANSWERS: Final = [("2", _("done")), ("3", _("led on")), ("4", _("refused")), ("5", _("our fault"))]


class ConsoleLogForm(LogForm):
    q = forms.CharField(
        label=_("E-mail address, workspace, IP address or request id"),
        max_length=MAX_QUERY_CHARACTERS,
        required=False,
    )
    outcome = forms.ChoiceField(
        label=_("Outcome"), choices=[("", _("All outcomes")), *AttemptState.choices], required=False
    )
    answer = forms.ChoiceField(label=_("Answer"), choices=[("", _("All answers")), *ANSWERS], required=False)
    device = DeviceField(label=_("Device"), required=False)


def attempts_for_operators(form: ConsoleLogForm) -> QuerySet[Attempt]:
    """In no order yet."""
    attempts = between(with_all(Attempt.objects.all()), "bound_at", **form.span)
    if query := _query(form):
        attempts = attempts.filter(_attempts_meant(query))
    if outcome := form.known("outcome"):
        attempts = attempts.filter(state=outcome)
    if device := form.known("device"):
        attempts = attempts.filter(device=device)
    return attempts


def requests_for_operators(form: ConsoleLogForm) -> QuerySet[RequestLog]:
    """In no order yet."""
    requests = between(RequestLog.objects.all(), "created_at", **form.span)
    if query := _query(form):
        requests = requests.filter(_requests_meant(query))
    if answer := form.known("answer"):
        requests = requests.filter(status__gte=int(answer) * 100, status__lt=int(answer) * 100 + 100)
    return requests


def workspace_names(lines: Iterable[RequestLog]) -> dict[uuid.UUID, str]:
    ids = {line.workspace_id for line in lines if line.workspace_id}
    return dict(Workspace.objects.filter(pk__in=ids).values_list("pk", "name"))


def _query(form: ConsoleLogForm) -> str:
    query = (form.known("q") or "").strip()
    return query if "\x00" not in query else ""


def _address(query: str) -> str | None:
    try:
        return str(ipaddress.ip_address(query))
    except ValueError:
        return None


def _uuid(query: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(query)
    except ValueError:
        return None


def _attempts_meant(query: str) -> Q:
    if wanted := _uuid(query):
        return Q(pk=wanted) | Q(job_id=wanted) | Q(workspace_id=wanted)
    if address := _address(query):
        return Q(job__client_address=address)
    if "@" in query:
        return Q(job__created_by__email__icontains=query)
    return (
        Q(workspace__name__icontains=query)
        | Q(job__request_id=query)
        | Q(error_code=query)
        | Q(job__api_key__prefix=query.rstrip("…"))
    )


def _requests_meant(query: str) -> Q:
    """Lines hold people and workspaces by value: they are looked up first."""
    if wanted := _uuid(query):
        return Q(workspace_id=wanted) | Q(user_id=wanted) | Q(api_key_id=wanted)
    if address := _address(query):
        return Q(address=address)

    def ids(rows: QuerySet[Any]) -> list[Any]:
        return list(rows.values_list("pk", flat=True)[:MEANT_AT_MOST])

    if "@" in query:
        return Q(user_id__in=ids(User.objects.filter(email__icontains=query)))
    return (
        Q(request_id=query)
        | Q(code=query)
        | Q(workspace_id__in=ids(Workspace.objects.filter(name__icontains=query)))
        | Q(api_key_id__in=ids(ApiKey.objects.filter(prefix=query.rstrip("…"))))
    )
