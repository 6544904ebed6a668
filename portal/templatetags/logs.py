"""What the tables of the logs say of a line."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.logs.models import RequestLog
from portal.logs.selectors import People
from portal.templatetags.ui import badge

register = template.Library()


@register.simple_tag
def person(people: People, line: RequestLog) -> SafeString:
    """The address of who asked, and under it the key that was used."""
    email = people.email(line.user_id) or "–"
    prefix = people.key_prefix(line.api_key_id)
    key = format_html(' <span class="muted console-table__below">{}…</span>', prefix) if prefix else ""
    return format_html('<span class="console-name-line" title="{}">{}</span>{}', email, email, key)


@register.simple_tag
def workspace_name(workspaces: Mapping[uuid.UUID, str], line: RequestLog) -> str:
    return workspaces.get(line.workspace_id, "") if line.workspace_id else ""


@register.simple_tag
def answer_badge(status: int) -> SafeString:
    """The status with a shape: done, refused, or our fault."""
    tone = "ok" if status < 400 else "warn" if status < 500 else "bad"
    return badge(tone, str(status))
