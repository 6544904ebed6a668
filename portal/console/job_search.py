"""Finding a job by whatever an operator was told: an id, a person, a workspace, an address, a time."""

from __future__ import annotations

import ipaddress
import uuid
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from portal.console.selectors import shown_jobs
from portal.logs.filters import MomentField
from portal.logs.selectors import between
from tts.models import Attempt, Device, SynthesisJob
from tts.states import JobClass, JobState

JOBS_PER_PAGE: Final = 50
MAX_QUERY_CHARACTERS: Final = 200


if TYPE_CHECKING:
    ModelChoiceField = forms.ModelChoiceField[Device]
else:  # Django's class takes no type parameter while it runs
    ModelChoiceField = forms.ModelChoiceField


class DeviceField(ModelChoiceField):
    """A device by its id; shown by its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(queryset=Device.objects.order_by("name"), empty_label=_("All devices"), **options)


class JobSearchForm(forms.Form):
    """A value that is not known filters nothing: an old link still opens the page."""

    q = forms.CharField(
        label=_("Id, e-mail address, workspace or IP address"),
        max_length=MAX_QUERY_CHARACTERS,
        required=False,
    )
    state = forms.ChoiceField(
        label=_("State"), choices=[("", _("All states")), *JobState.choices], required=False
    )
    job_class = forms.ChoiceField(
        label=_("Class"), choices=[("", _("All classes")), *JobClass.choices], required=False
    )
    device = DeviceField(label=_("Device"), required=False)
    since = MomentField(label=_("From"), required=False)
    until = MomentField(label=_("Until"), required=False)
    before = forms.CharField(required=False, max_length=100)

    def known(self, name: str) -> Any:
        self.is_valid()
        return self.cleaned_data.get(name)

    @property
    def is_filtered(self) -> bool:
        return any(self.known(name) for name in ("q", "state", "job_class", "device", "since", "until"))


def find_jobs(form: JobSearchForm) -> QuerySet[SynthesisJob]:
    """All customers' jobs that the form asks for, in no order yet. Deleted ones too: their receipts stay."""
    jobs = between(shown_jobs(), "created_at", form.known("since"), form.known("until"))
    if query := (form.known("q") or "").strip():
        jobs = jobs.filter(_meant(query))
    if state := form.known("state"):
        jobs = jobs.filter(state=state)
    if job_class := form.known("job_class"):
        jobs = jobs.filter(job_class=job_class)
    if device := form.known("device"):
        jobs = jobs.filter(Exists(Attempt.objects.filter(job=OuterRef("pk"), device=device)))
    return jobs


def _meant(query: str) -> Q:
    """Which jobs the words mean."""
    try:
        wanted = uuid.UUID(query)
    except ValueError:
        pass
    else:
        attempts = Attempt.objects.filter(pk=wanted).values("job_id")
        return Q(pk=wanted) | Q(pk__in=attempts) | Q(workspace_id=wanted) | Q(created_by_id=wanted)
    try:
        return Q(client_address=str(ipaddress.ip_address(query)))
    except ValueError:
        pass
    if "@" in query:
        return Q(created_by__email__icontains=query)
    if "\x00" in query:
        return Q(pk__in=[])
    return (
        Q(workspace__name__icontains=query)
        | Q(request_id=query)
        | Q(api_key__prefix=query.rstrip("…"))
        | Q(error_code=query)
        | (Q(created_by__email__istartswith=query))
    )
