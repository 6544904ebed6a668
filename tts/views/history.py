"""What a workspace had spoken: searched, filtered, page by page."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.tenancy import require_workspace
from tts.forms import HistoryForm
from tts.selectors.jobs import beginnings_of, jobs_of, with_beginning
from tts.selectors.voices import usable_voices
from tts.states import JOB_LIVE
from tts.views.cards import job_rows, voice_name

ROWS_PER_PAGE = 20


@login_required
@require_safe
def history(request: HttpRequest) -> HttpResponse:
    workspace = require_workspace(request)
    form = HistoryForm(request.GET)
    filters = form.filters()
    jobs = beginnings_of(jobs_of(workspace, **filters))
    page = Paginator(jobs, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    rows = job_rows(with_beginning(job) for job in page.object_list)
    context = {
        "form": form,
        "page": page,
        "rows": rows,
        "is_filtered": any(filters.values()),
        "is_empty": not rows and not any(filters.values()),
        "has_live": any(row.job.state in JOB_LIVE for row in rows),
        "voices": [
            (voice.pk, voice_name(voice)) for voice in usable_voices(workspace, cast(User, request.user))
        ],
        "chosen_voice": filters["voice_id"],
    }
    if request.headers.get("HX-Request"):
        return render(request, "tts/_history_rows.html", context)
    return render(request, "tts/history.html", context)
