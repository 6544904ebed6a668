"""The studio: text in, price, place in the queue, sound out."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User, Workspace
from accounts.tenancy import require_workspace
from billing.selectors.balances import balance_of
from billing.selectors.prices import current_price, rate_for
from portal.lib.errors import DomainError
from portal.lib.http import client_address
from portal.lib.logging import request_id_var
from tts.audio.formats import DEFAULT_FORMAT
from tts.documents.errors import document_limits
from tts.errors import JobNotFound
from tts.forms import MAX_SEED, MAX_SPEED, MIN_SPEED, RepeatForm, RequestForm, StudioForm
from tts.models import SynthesisJob
from tts.selectors.jobs import job_of, jobs_of, lone_job_of
from tts.selectors.voices import preset_voices, voices_of
from tts.services.instructions import INSTRUCT
from tts.services.jobs import repeat_request
from tts.services.quoting import SCRIPT
from tts.services.submit import JobRequest, Submission, quote_request, submit_job
from tts.states import JOB_LIVE, JobClass, VoiceState
from tts.text.instructions import clean_free_instruction
from tts.text.limits import max_job_characters
from tts.views.cards import VoiceCard, voice_cards
from tts.views.curl import curl_command
from tts.views.instruction_choices import instruction_offer
from tts.views.live import live_context
from tts.views.script_cast import cast_rows, posted_cast
from tts.views.spoken_preview import spoken_preview
from tts.views.text_faults import text_faults


@dataclass(frozen=True)
class ClassChoice:
    """A class of urgency with its price today."""

    value: str
    label: str | Promise
    gpu_second_micros: int
    text_limit: int


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def studio(request: HttpRequest) -> HttpResponse:
    workspace = require_workspace(request)
    if request.method == "POST":
        return _answer_form(request, workspace)
    job = _job_to_show(request, workspace)
    form = StudioForm(initial=_initial(request, workspace, job))
    return _page(request, workspace, form=form, job=job)


def studio_with_text(request: HttpRequest, workspace: Workspace, text: str) -> HttpResponse:
    """The studio with this text in its field, and the rest as it was used last."""
    return _page(
        request,
        workspace,
        form=StudioForm(initial={**_initial(request, workspace, None), "text": text}),
        job=None,
    )


@login_required
@require_POST
def quote_page(request: HttpRequest) -> HttpResponse:
    """The price of what stands in the form now, as a part of the page. Refusals are an answer too."""
    workspace = require_workspace(request)
    context = _quote_context(request, workspace, RequestForm(request.POST), _voices(request, workspace))
    return render(request, "tts/_quote_answer.html", context)


@login_required
@require_POST
def job_repeat(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """The same request once more with another seed: one job for one token, however often it is sent."""
    workspace = require_workspace(request)
    form = RepeatForm(request.POST)
    if not form.is_valid():
        return redirect("job", job_id=job_id)
    wanted = repeat_request(lone_job_of(workspace, job_id))
    submission = _submit(request, workspace, wanted, token=form.cleaned_data["token"])
    return redirect(_address_of(submission.job))


def _address_of(job: SynthesisJob) -> str:
    """The studio with this job below the form."""
    return f"{reverse('studio')}?job={job.pk}#job"


def _answer_form(request: HttpRequest, workspace: Workspace) -> HttpResponse:
    form = StudioForm(request.POST)
    if "show_price" in request.POST:
        return _page(request, workspace, form=form, job=None, priced=True)
    if not form.is_valid():
        return _page(request, workspace, form=form, job=None, status=400)
    try:
        wanted = _request_of(form, posted_cast(request.POST, _voices(request, workspace)))
        submission = _submit(request, workspace, wanted, token=form.cleaned_data["token"])
    except DomainError as error:
        # Shown beside the form, which keeps what was typed; a page of its own would lose it.
        return _page(request, workspace, form=form, job=None, error=error, status=error.status)
    return redirect(_address_of(submission.job))


def _submit(
    request: HttpRequest, workspace: Workspace, wanted: JobRequest, *, token: uuid.UUID
) -> Submission:
    """Submit under a key made of the page's token and the request.

    The same page sent twice is one job; the same page with another text (the browser went back) is another.
    """
    return submit_job(
        workspace=workspace,
        user=cast(User, request.user),
        api_key=None,
        request=wanted,
        idempotency_key=f"page:{token}:{wanted.fingerprint()}",
        client_address=client_address(request),
        request_id=request_id_var.get(),
    )


def _request_of(form: RequestForm, cast: dict[str, uuid.UUID]) -> JobRequest:
    data = form.cleaned_data
    is_instructed = data["mode"] == INSTRUCT
    return JobRequest(
        voice_id=data["voice"],
        text=data["text"],
        language=data["language"],
        job_class=data["job_class"],
        seed=data["seed"],
        speed=data["speed"],
        response_format=data["response_format"],
        mode=data["mode"],
        # What was chosen under another mode stays in the form and is not asked for.
        instruction=data["instruction"] if is_instructed else "",
        instruction_text=clean_free_instruction(data["instruction_text"]) if is_instructed else "",
        cast=cast if data["mode"] == SCRIPT else {},
    )


def _job_to_show(request: HttpRequest, workspace: Workspace) -> SynthesisJob | None:
    """The job that the address names, else the person's newest live one: leaving loses nothing."""
    if wanted := request.GET.get("job"):
        try:
            return job_of(workspace, uuid.UUID(wanted))
        except ValueError as error:
            raise JobNotFound from error
    live = _own_jobs(request, workspace).filter(state__in=JOB_LIVE)
    newest = live.values_list("pk", flat=True).first()
    return job_of(workspace, newest) if newest else None


def _own_jobs(request: HttpRequest, workspace: Workspace) -> QuerySet[SynthesisJob]:
    """What the person had spoken, but for tests of voices that are not saved: those have a page of their own."""
    return jobs_of(workspace).filter(created_by_id=request.user.pk).exclude(voice__state=VoiceState.DRAFT)


def _initial(request: HttpRequest, workspace: Workspace, job: SynthesisJob | None) -> dict[str, Any]:
    """The shown job's request, else the voice that the address names or that was used last."""
    initial: dict[str, Any] = {
        "token": uuid.uuid4(),
        "speed": 1.0,
        "response_format": DEFAULT_FORMAT,
        "job_class": JobClass.INTERACTIVE,
    }
    if job is not None:
        return initial | {
            "text": job.text,
            "voice": job.voice_id,
            "job_class": job.job_class,
            "language": job.language,
            "speed": job.speed,
            "response_format": job.response_format,
            "mode": job.mode,
            "instruction": job.instruction,
            "instruction_text": job.instruction_text,
        }
    own = _own_jobs(request, workspace)
    return initial | {
        "voice": request.GET.get("voice") or own.values_list("voice_id", flat=True).first(),
    }


def _quote_context(
    request: HttpRequest, workspace: Workspace, form: RequestForm, voices: list[VoiceCard]
) -> dict[str, Any]:
    balance = balance_of(workspace.pk)
    context: dict[str, Any] = {"balance": balance, "quote": None, "refusal": "", "form_errors": []}
    if not form.data.get("text", "").strip():
        return context
    if not form.is_valid():
        context["form_errors"] = [error for errors in form.errors.values() for error in errors]
        return context
    chosen = posted_cast(form.data, voices)
    wanted = _request_of(form, chosen)
    try:
        priced = quote_request(workspace=workspace, user=cast(User, request.user), request=wanted)
    except DomainError as error:
        return context | {"refusal": error.text(), "faults": text_faults(error, wanted.text)}
    rows = cast_rows(priced.speakers, chosen=chosen, narrator_id=wanted.voice_id, voices=voices)
    wanted = replace(wanted, cast={row.name: row.voice_id for row in rows})
    return context | {
        "quote": priced,
        "is_script": wanted.mode == SCRIPT,
        "lacks_instruction": wanted.mode == INSTRUCT and not (wanted.instruction or wanted.instruction_text),
        "voices": voices,
        "cast_rows": rows,
        "preview": spoken_preview(wanted.text, priced),
        "curl": curl_command(wanted),
        "is_affordable": priced.held_micros <= balance.available_micros,
    }


def _priced_form(
    request: HttpRequest, form: StudioForm, job: SynthesisJob | None, *, priced: bool
) -> RequestForm:
    """What the page's price is of: nothing, unless it was asked for, or the speakers of a script are to be shown."""
    if priced or (request.method == "POST" and form["mode"].value() == SCRIPT):
        return RequestForm(request.POST)
    if job is not None and job.mode == SCRIPT:
        return RequestForm(_form_data(job))
    return RequestForm({})


def _form_data(job: SynthesisJob) -> QueryDict:
    """A script's job as its form would be sent."""
    data = QueryDict(mutable=True)
    for name in ("text", "job_class", "language", "speed", "response_format", "mode"):
        data[name] = str(getattr(job, name))
    data["voice"] = str(job.voice_id)
    data.setlist("speaker", list(job.cast))
    data.setlist("speaker_voice", list(job.cast.values()))
    return data


def _voices(request: HttpRequest, workspace: Workspace) -> list[VoiceCard]:
    return voice_cards([*voices_of(workspace, cast(User, request.user)), *preset_voices()])


def _classes() -> list[ClassChoice]:
    price = current_price()
    return [
        ClassChoice(
            value=job_class.value,
            label=job_class.label,
            gpu_second_micros=rate_for(price=price, job_class=job_class.value).gpu_second_micros,
            text_limit=max_job_characters(job_class.value),
        )
        for job_class in JobClass
    ]


def _page(
    request: HttpRequest,
    workspace: Workspace,
    *,
    form: StudioForm,
    job: SynthesisJob | None,
    error: DomainError | None = None,
    priced: bool = False,
    status: int = 200,
) -> HttpResponse:
    voices = _voices(request, workspace)
    chosen = str(form["voice"].value() or "")
    if chosen not in {str(voice.voice_id) for voice in voices}:
        chosen = str(voices[0].voice_id) if voices else ""
    context: dict[str, Any] = {
        "form": form,
        "voices": voices,
        "chosen_voice": chosen,
        "has_own_voices": any(not voice.is_preset for voice in voices),
        "classes": _classes(),
        "instructions": instruction_offer(),
        "text_limit": max_job_characters(str(form["job_class"].value() or JobClass.INTERACTIVE)),
        **document_limits(),
        "speed_limits": (MIN_SPEED, MAX_SPEED),
        "seed_limit": MAX_SEED,
        "error": error,
        **_quote_context(request, workspace, _priced_form(request, form, job, priced=priced), voices),
    }
    if job is not None:
        context |= live_context(job, cancel_next=_address_of(job))
    return render(request, "tts/studio.html", context, status=status)
