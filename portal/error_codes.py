"""Every stable error code of the product, for the page that lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError
from tts.failures import FAILURES

# Where errors are defined. Imported here, so that the page lists them also in a process that has not met them yet.
MODULES = (
    "accounts.errors",
    "billing.errors",
    "portal.console.money_act",
    "portal.lib.errors",
    "portal.lib.http",
    "portal.lib.json_input",
    "portal.lib.problem",
    "portal.lib.sse",
    "tts.audio.errors",
    "tts.documents.errors",
    "tts.errors",
    "tts.text.errors",
    "tts.text.pronunciation_errors",
    "tts.version_errors",
)
# What the framework refuses by itself: code, status, text. The codes are portal.lib.api_problem's.
FRAMEWORK_ERRORS = (
    (
        "not_authenticated",
        401,
        _("No API key came with the request. Send “Authorization: Bearer vp_live_…”."),
    ),
    ("forbidden", 403, _("This key or account may not do this.")),
    (
        "csrf_failed",
        403,
        _("This form was open for too long, or cookies are off. Reload the page and send it again."),
    ),
    ("method_not_allowed", 405, _("This address does not know this method.")),
    ("not_acceptable", 406, _("This address answers with another kind of content than was asked for.")),
    (
        "unsupported_media_type",
        415,
        _("The body is of a kind that this address does not read. Send JSON, or a form with files."),
    ),
    ("malformed_request", 400, _("The body cannot be read: it is not valid JSON, or not a complete form.")),
    ("rate_limited", 429, _("Too many requests came in a short time. Wait as long as Retry-After says.")),
    ("internal_error", 500, _("Something broke on our side. Nothing was charged. Quote the request id.")),
)
# "%(maximum)d" or "%(seconds).1f" stands for what the real message fills in.
PLACE = re.compile(r"%\(\w+\)[\d.]*[a-z]")


RETRYABLE = (429, 503)


@dataclass(frozen=True)
class DocumentedError:
    """`status` is None for what ends a job after it was taken in: it stands in the job, not in an answer."""

    code: str
    status: int | None
    text: str
    retryable: bool


def _subclasses(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def documented_errors() -> list[DocumentedError]:
    """One row per code, by code. Texts are in the active language; what differs by case stands as `…`."""
    for name in MODULES:
        import_module(name)
    found = {code: DocumentedError(code, None, str(text), False) for code, text in FAILURES.items()}
    for code, status, text in FRAMEWORK_ERRORS:
        found[code] = DocumentedError(code, status, str(text), status in RETRYABLE)
    for error in _subclasses(DomainError):
        # A base class of several errors has no code of its own.
        if "code" in vars(error) and error.__module__.split(".")[0] in (
            "accounts",
            "billing",
            "portal",
            "tts",
        ):
            retryable = error.retry_after_s is not None or error.status in RETRYABLE
            found[error.code] = DocumentedError(
                error.code, error.status, PLACE.sub("…", str(error.message)), retryable
            )
    return sorted(found.values(), key=lambda row: row.code)
