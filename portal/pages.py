"""Pages that belong to no one app: landing, documentation, error codes, the wording of consent, samples."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from accounts.consent_statements import CURRENT_VERSION, STATEMENTS
from billing.errors import NoPrice
from portal.error_codes import documented_errors
from portal.lib.display import LANGUAGE_NAMES
from portal.lib.ranges import ranged_response
from portal.speech_price import ClassPrice, class_prices
from tts import storage
from tts.engine.catalogue import PRESET_VOICES, PresetVoice
from tts.views.player import sample_outline

SHOWN_SAMPLES = 3


@dataclass(frozen=True)
class Sample:
    """A preset voice on the landing page. A `duration_ms` of 0 says that its sample has not been spoken yet."""

    key: str
    name: str
    description: str
    language: str
    duration_ms: int
    peaks: tuple[int, ...]

    @property
    def ready(self) -> bool:
        return self.duration_ms > 0


def _sample(preset: PresetVoice, *, chinese: bool) -> Sample:
    key = storage.preset_sample_key(preset.key)
    duration_ms: int = 0
    peaks: tuple[int, ...] = ()
    with contextlib.suppress(FileNotFoundError):
        duration_ms, peaks = sample_outline(key, storage.size_of(key))
    return Sample(
        key=preset.key,
        name=preset.chinese_name if chinese else preset.english_name,
        description=preset.chinese_description if chinese else preset.english_description,
        language=preset.language,
        duration_ms=duration_ms,
        peaks=peaks,
    )


def landing_samples() -> list[Sample]:
    """Three voices: two that speak the reader's language and one that speaks the other, ready ones first."""
    chinese = (get_language() or "").startswith("zh")
    samples = [_sample(preset, chinese=chinese) for preset in PRESET_VOICES]
    samples.sort(key=lambda sample: not sample.ready)
    home = "zh" if chinese else "en"
    own = [sample for sample in samples if sample.language == home]
    other = [sample for sample in samples if sample.language != home]
    return (own[: SHOWN_SAMPLES - 1] + other)[:SHOWN_SAMPLES]


def _prices() -> list[ClassPrice]:
    try:
        return class_prices()
    except NoPrice:
        return []


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """What it is, what it sounds like, what it costs. Who is signed in goes to work."""
    if request.user.is_authenticated and "stay" not in request.GET:
        return redirect("studio")
    samples = landing_samples()
    context = {
        "samples": samples,
        "no_sample": not any(sample.ready for sample in samples),
        "prices": _prices(),
    }
    return render(request, "portal/landing.html", context)


@require_safe
def preset_sample(request: HttpRequest, preset_key: str) -> HttpResponseBase:
    """The sample that a node has spoken with a preset voice. Public: it is nobody's."""
    if preset_key not in {preset.key for preset in PRESET_VOICES}:
        raise Http404
    key = storage.preset_sample_key(preset_key)
    try:
        size = storage.size_of(key)
    except FileNotFoundError as error:
        raise Http404 from error
    return ranged_response(
        request,
        open_file=partial(storage.open_audio, key),
        size=size,
        content_type="audio/wav",
        # A sample is spoken anew only by another engine, which gives it another length.
        etag=hashlib.sha256(f"{key}:{size}".encode()).hexdigest()[:32],
        filename=f"{preset_key}.wav",
        storage_key=key,
    )


@require_safe
def documentation(request: HttpRequest) -> HttpResponse:
    return render(request, "portal/documentation.html", {"prices": _prices()})


@require_safe
def error_codes(request: HttpRequest) -> HttpResponse:
    """Every stable code with its status and what to do. A problem's `type` leads here."""
    return render(request, "portal/error_codes.html", {"errors": documented_errors()})


@require_safe
def consent_wording(request: HttpRequest) -> HttpResponse:
    """What one agrees to when a voice is cloned, in all languages, the reader's first."""
    here = get_language()
    texts = sorted(STATEMENTS[CURRENT_VERSION].items(), key=lambda item: item[0] != here)
    statements = [
        {"locale": locale, "language": LANGUAGE_NAMES[locale], "text": text} for locale, text in texts
    ]
    return render(
        request, "portal/consent_wording.html", {"version": CURRENT_VERSION, "statements": statements}
    )
