"""Finding a job by whatever an operator was told: an id, a person, a workspace, an address, a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from portal.console.search_bar import SearchBar, words_field
from portal.console.search_words import (
    any_of,
    cannot_be_stored,
    ids,
    keys_that_begin,
    known_address,
    known_uuid,
    people_from,
    people_with,
    workspaces_named,
)
from portal.console.selectors import shown_jobs
from portal.logs.filters import MomentField
from portal.logs.selectors import between
from tts.models import Attempt, Device, SynthesisJob
from tts.states import JobClass, JobState

JOBS_PER_PAGE: Final = 50


if TYPE_CHECKING:
    ModelChoiceField = forms.ModelChoiceField[Device]
else:  # Django's class takes no type parameter while it runs
    ModelChoiceField = forms.ModelChoiceField


class DeviceField(ModelChoiceField):
    """A device by its id; shown by its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(queryset=Device.objects.order_by("name"), empty_label=_("All devices"), **options)


class JobSearchForm(SearchBar):
    q = words_field(_("Id, e-mail address, workspace or IP address"))
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

    @property
    def choice_names(self) -> tuple[str, ...]:
        return ("state", "job_class", "device")


def find_jobs(form: JobSearchForm) -> QuerySet[SynthesisJob]:
    """All customers' jobs that the form asks for, in no order yet. Deleted ones too: their receipts stay."""
    jobs = between(shown_jobs(), "created_at", form.known("since"), form.known("until"))
    if form.query:
        jobs = jobs.filter(_meant(form.query))
    if state := form.known("state"):
        jobs = jobs.filter(state=state)
    if job_class := form.known("job_class"):
        jobs = jobs.filter(job_class=job_class)
    if device := form.known("device"):
        jobs = jobs.filter(Exists(Attempt.objects.filter(job=OuterRef("pk"), device=device)))
    return jobs


def _meant(query: str) -> Q:
    """Which jobs the words mean. Some queries."""
    if cannot_be_stored(query):
        return Q(pk__in=[])
    if wanted := known_uuid(query):
        of_attempt = ids(Attempt.objects.filter(pk=wanted), "job_id")
        return any_of({"pk": [wanted, *of_attempt], "workspace": [wanted], "created_by": [wanted]})
    if address := known_address(query):
        return Q(client_address=address)
    if "@" in query:
        return any_of({"created_by": people_with(query)})
    failed_so = SynthesisJob.objects.exclude(error_code="").filter(error_code=query)
    return any_of(
        {
            "workspace": workspaces_named(query),
            "pk": ids(SynthesisJob.objects.exclude(request_id="").filter(request_id=query)),
            "api_key": keys_that_begin(query),
            "error_code": [query] if failed_so.exists() else [],
            "created_by": people_from(query),
        }
    )
