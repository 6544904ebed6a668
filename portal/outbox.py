"""The outbox of the embedded stack: what it would have sent by mail, for a browser on the same machine."""

from __future__ import annotations

import email
import email.policy
import ipaddress
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

SHOWN_MAILS = 50
# What django.core.mail.backends.console writes after each message of a file.
SEPARATOR = re.compile(rb"\n-{79}\n")
# A request that came through any proxy may come from anywhere, whatever address it has now.
PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Forwarded-Host", "Via")


@dataclass(frozen=True)
class Mail:
    sent_at: datetime
    to: str
    subject: str
    body: str


def is_open(request: HttpRequest) -> bool:
    """Whether this request may read the outbox: the embedded stack, and a browser on the same machine.

    The name in the address bar must be this machine's own too: a page elsewhere whose name was made to
    lead here (DNS rebinding) would come from 127.0.0.1 as well.
    """
    if not settings.VOICEPOOL["OUTBOX"] or any(header in request.headers for header in PROXY_HEADERS):
        return False
    return _is_loopback(request.META.get("REMOTE_ADDR", "")) and _is_own_name(request.get_host())


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def _is_own_name(host: str) -> bool:
    name = host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]
    return name == "localhost" or name.endswith(".localhost") or _is_loopback(name)


def read_mails(folder: Path) -> list[Mail]:
    """The newest mails in `folder`, newest first. A file that is being written is read as far as it is."""
    # The backend's files are named by the moment they were begun: the newest names hold the newest mails.
    newest = sorted(folder.glob("*.log"), key=lambda path: path.name, reverse=True)[:SHOWN_MAILS]
    mails = [mail for path in newest for mail in _mails_of(path)]
    return sorted(mails, key=lambda mail: mail.sent_at, reverse=True)[:SHOWN_MAILS]


def _mails_of(path: Path) -> list[Mail]:
    written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    parts = [part.strip(b"\n") for part in SEPARATOR.split(path.read_bytes())]
    return [_mail(part, written_at) for part in parts if part]


def _mail(raw: bytes, written_at: datetime) -> Mail:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    body = message.get_body(("plain",))
    try:
        sent_at = parsedate_to_datetime(message["Date"])
    except (TypeError, ValueError):
        sent_at = written_at
    return Mail(
        # "-0000" is what Django writes: UTC, from a host that does not tell its zone.
        sent_at=sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC),
        to=str(message["To"] or ""),
        subject=str(message["Subject"] or ""),
        body=str(body.get_content()).strip() if body is not None else "",
    )


@require_safe
@never_cache
def outbox(request: HttpRequest) -> HttpResponse:
    if not is_open(request):
        raise Http404
    return render(request, "portal/outbox.html", {"mails": read_mails(Path(settings.EMAIL_FILE_PATH))})
