"""The log of all customers: requests and attempts, filtered."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.models import Workspace
from portal.console.job_search import DeviceField
from portal.console.search_bar import SearchBar, words_field
from portal.console.search_words import (
    any_of,
    cannot_be_stored,
    ids,
    keys_that_begin,
    known_address,
    known_uuid,
    people_with,
    workspaces_named,
)
from portal.logs.filters import REQUESTS, LogForm
from portal.logs.models import RequestLog
from portal.logs.selectors import between, with_all
from tts.models import Attempt, SynthesisJob
from tts.states import AttemptState

ANSWERS: Final = [("2", _("done")), ("3", _("led on")), ("4", _("refused")), ("5", _("our fault"))]


class ConsoleLogForm(SearchBar, LogForm):
    q = words_field(_("E-mail address, workspace, IP address or request id"))
    outcome = forms.ChoiceField(
        label=_("Outcome"), choices=[("", _("All outcomes")), *AttemptState.choices], required=False
    )
    answer = forms.ChoiceField(label=_("Answer"), choices=[("", _("All answers")), *ANSWERS], required=False)
    device = DeviceField(label=_("Device"), required=False)

    @property
    def choice_names(self) -> tuple[str, ...]:
        return ("answer",) if self.chosen_kind == REQUESTS else ("outcome", "device")


def attempts_for_operators(form: ConsoleLogForm) -> QuerySet[Attempt]:
    """In no order yet."""
    attempts = between(with_all(Attempt.objects.all()), "bound_at", **form.span)
    if form.query:
        attempts = attempts.filter(_attempts_meant(form.query))
    if outcome := form.known("outcome"):
        attempts = attempts.filter(state=outcome)
    if device := form.known("device"):
        attempts = attempts.filter(device=device)
    return attempts


def requests_for_operators(form: ConsoleLogForm) -> QuerySet[RequestLog]:
    """In no order yet."""
    requests = between(RequestLog.objects.all(), "created_at", **form.span)
    if form.query:
        requests = requests.filter(_requests_meant(form.query))
    if answer := form.known("answer"):
        requests = requests.filter(status__gte=int(answer) * 100, status__lt=int(answer) * 100 + 100)
    return requests


def workspace_names(lines: Iterable[RequestLog]) -> dict[uuid.UUID, str]:
    ids = {line.workspace_id for line in lines if line.workspace_id}
    return dict(Workspace.objects.filter(pk__in=ids).values_list("pk", "name"))


def _attempts_meant(query: str) -> Q:
    """Which attempts the words mean. Some queries."""
    if cannot_be_stored(query):
        return Q(pk__in=[])
    if wanted := known_uuid(query):
        return any_of({"pk": [wanted], "job": [wanted], "workspace": [wanted]})
    if address := known_address(query):
        return Q(job__client_address=address)
    if "@" in query:
        return any_of({"job__created_by": people_with(query)})
    failed_so = Attempt.objects.exclude(error_code="").filter(error_code=query)
    return any_of(
        {
            "workspace": workspaces_named(query),
            "job": ids(SynthesisJob.objects.exclude(request_id="").filter(request_id=query)),
            "error_code": [query] if failed_so.exists() else [],
            "job__api_key": keys_that_begin(query),
        }
    )


def _requests_meant(query: str) -> Q:
    """Which requests the words mean. Some queries."""
    if cannot_be_stored(query):
        return Q(pk__in=[])
    if wanted := known_uuid(query):
        return Q(workspace_id=wanted) | Q(user_id=wanted) | Q(api_key_id=wanted)
    if address := known_address(query):
        return Q(address=address)
    if "@" in query:
        return any_of({"user_id": people_with(query)})
    return any_of(
        {
            "request_id": [query],
            "code": [query],
            "workspace_id": workspaces_named(query),
            "api_key_id": keys_that_begin(query),
        }
    )
