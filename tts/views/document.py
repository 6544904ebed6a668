"""A document for the Studio: uploaded, its chapters chosen, put into the text. Nothing of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.tenancy import require_workspace
from portal.lib.errors import DomainError
from tts.documents.blocks import Document
from tts.documents.errors import DocumentEmpty, document_limits
from tts.services.documents import read_document
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_LONG_JOB_CHARACTERS
from tts.views.studio import studio_with_text

# A page that works without scripts sends the chapters back: below settings.DATA_UPLOAD_MAX_MEMORY_SIZE, and below the
# number of fields that Django takes. Scripts send nothing back.
_CARRIED_BYTES: Final = 1_500_000
_CARRIED_CHAPTERS: Final = 400


@dataclass(frozen=True)
class ChapterChoice:
    """A chapter to choose. `text` "" is too much for a page without scripts to carry."""

    number: int
    title: str
    characters: int
    text: str
    is_chosen: bool


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def document(request: HttpRequest) -> HttpResponse:
    """The page to upload a document; after the upload, its chapters. For scripts only that part."""
    workspace = require_workspace(request)
    if request.method != "POST":
        return _page(request, {})
    try:
        upload = request.FILES.get("document")
        if not isinstance(upload, UploadedFile):
            raise DocumentEmpty
        found = read_document(workspace=workspace, upload=upload)
    except DomainError as error:
        return _page(request, {"error": error}, status=error.status)
    choices = _choices(found, carries_all=_is_part(request))
    chosen = sum(choice.characters for choice in choices if choice.is_chosen)
    context = {
        "document": found,
        "choices": choices,
        "characters": sum(choice.characters for choice in choices),
        "chosen_characters": chosen,
        "is_cut": not all(choice.text for choice in choices),
    }
    return _page(request, context)


@login_required
@require_POST
def document_text(request: HttpRequest) -> HttpResponse:
    """The Studio with the chosen chapters in its text field; for pages without scripts."""
    workspace = require_workspace(request)
    numbers = [number for number in request.POST.getlist("chapter") if number.isdecimal()]
    texts = [request.POST.get(f"text-{number}", "").replace("\r\n", "\n") for number in numbers]
    text = "\n\n".join(text for text in texts if text)
    return studio_with_text(request, workspace, text) if text else redirect("document")


def _choices(found: Document, *, carries_all: bool) -> list[ChapterChoice]:
    """The chapters, chosen from the first one on as far as one job takes them."""
    choices: list[ChapterChoice] = []
    characters = carried = 0
    for number, chapter in enumerate(found.chapters):
        length = chapter.characters
        # Between chapters stands an empty line.
        characters += length + (2 if number else 0)
        text = chapter.text
        carried += len(text.encode())
        fits = carries_all or (carried <= _CARRIED_BYTES and number < _CARRIED_CHAPTERS)
        choices.append(
            ChapterChoice(
                number=number,
                title=chapter.title,
                characters=length,
                text=text if fits else "",
                is_chosen=fits and characters <= MAX_LONG_JOB_CHARACTERS,
            )
        )
    return choices


def _is_part(request: HttpRequest) -> bool:
    return request.headers.get("X-Part") == "document"


def _page(request: HttpRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    context = {
        **context,
        **document_limits(),
        "text_limit": MAX_LONG_JOB_CHARACTERS,
        "interactive_limit": MAX_JOB_CHARACTERS,
        "is_part": _is_part(request),
    }
    if _is_part(request):
        part = render(request, "tts/_document_found.html", context, status=status)
        part["X-Part"] = "document"
        return part
    return render(request, "tts/document.html", context, status=status)
