"""A segment said again from the Job page: its editor, the price before it is pressed, the new job."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any, cast

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from accounts.models import User
from accounts.tenancy import require_workspace
from billing.selectors.balances import balance_of
from portal.lib.errors import DomainError
from portal.lib.http import client_address
from portal.lib.logging import request_id_var
from tts.models import SynthesisJob
from tts.selectors.jobs import job_of, lone_job_of
from tts.services.revisions import SegmentEdit, quote_revision, revise_job
from tts.services.submit import request_digest
from tts.states import JobState
from tts.views.job_page import render_job


class RevisionForm(forms.Form):
    """`token` was made with the editor: sent twice, it makes one job."""

    index = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    text = forms.CharField(strip=False, required=False)
    another_seed = forms.BooleanField(required=False)
    token = forms.UUIDField(widget=forms.HiddenInput)


@dataclass(frozen=True)
class Editor:
    """The editor of one segment as it is shown."""

    index: int
    text: str
    another_seed: bool
    token: uuid.UUID
    error: str = ""

    @property
    def number(self) -> int:
        return self.index + 1


def editor_of(job: SynthesisJob, index: str) -> Editor | None:
    """The editor that an address asks for; None for a segment that there is not, or that cannot be edited."""
    texts = [segment.text for segment in job.segments.all() if str(segment.index) == index]
    if not texts or job.state != JobState.SUCCEEDED:
        return None
    return Editor(int(index), "".join(texts).strip(), False, uuid.uuid4())


@login_required
@require_POST
def job_revise(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Quote the edit (`show_price`, or any request of htmx), or make the new job and go to it."""
    workspace = require_workspace(request)
    # Its other segments are read when the page is drawn: the price is asked for with every pause of somebody who types.
    job = lone_job_of(workspace, job_id)
    form = RevisionForm(request.POST)
    if not form.is_valid():
        return redirect("job", job_id=job_id)
    data = form.cleaned_data
    editor = Editor(data["index"], data["text"], data["another_seed"], data["token"])
    edit = _edit(job, editor)
    wants_price = bool(getattr(request, "htmx", False)) or "show_price" in request.POST
    context: dict[str, Any] = {"editor": editor, "balance": balance_of(workspace.pk)}
    status = 200
    try:
        if not wants_price:
            submission = revise_job(
                workspace=workspace,
                user=cast(User, request.user),
                api_key=None,
                job_id=job_id,
                edits=[edit],
                idempotency_key=_key(editor, edit),
                client_address=client_address(request),
                request_id=request_id_var.get(),
            )
            return redirect("job", job_id=submission.job.pk)
        context["revision_quote"] = quote_revision(
            workspace=workspace, user=cast(User, request.user), job_id=job_id, edits=[edit]
        )
    except DomainError as error:
        # Beside the editor, which keeps what was typed.
        context["revision_refusal"] = error.text()
        status = 200 if wants_price else error.status
    if getattr(request, "htmx", False):
        return render(request, "tts/_revision_price.html", context)
    return render_job(request, job_of(workspace, job_id), context, status=status)


def _key(editor: Editor, edit: SegmentEdit) -> str:
    """The same page sent twice is one job; with another text (the browser went back) it is another."""
    return f"revision:{editor.token}:{request_digest(asdict(edit))}"


def _edit(job: SynthesisJob, editor: Editor) -> SegmentEdit:
    """A text as it was says that another seed is wished for, or nothing that would be spoken anew."""
    parts = job.segments.filter(index=editor.index).order_by("part")
    before = "".join(parts.values_list("text", flat=True))
    typed = editor.text.replace("\r\n", "\n")
    if editor.another_seed and typed.strip() == before.strip():
        return SegmentEdit(editor.index)
    seed = editor.token.int % 2**31 if editor.another_seed else None
    return SegmentEdit(editor.index, typed, seed)
