"""Every address of the portal, with ids filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

# Addresses that are regular expressions, each with one that it matches. A new one has to be added here.
EXPRESSIONS = {
    r"/admin/^(?P<app_label>accounts|billing|tts|account)/$": "/admin/accounts/",
    r"/admin/(?P<url>.*)$": "/admin/nonsense/",
    r"/account/^confirm-email/(?P<key>[-:\w]+)/$": "/account/confirm-email/nonsense/",
    r"/account/^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$": "/account/password/reset/key/1-nonsense/",
}
# Parameters that name no tenant's row.
HARMLESS = {
    "preset_key": "xiaohe",
    "content_type_id": "1",
    "device_id": "1",
    "act": "cancel",
    "plan_code": "standard",
    "provider_name": "stripe",
    "difference_id": "1",
    "decision": "approve",
    "code": "standard",
    "engine": "simulated",
    "number": "1",
}


@dataclass(frozen=True)
class Address:
    """`template` has parameters as `{name}`; `parameters` are those that name a row."""

    template: str
    parameters: tuple[str, ...]

    def filled(self, ids: Mapping[str, object]) -> str:
        return self.template.format(**{name: ids[name] for name in self.parameters})

    @property
    def is_admin(self) -> bool:
        return self.template.startswith("/admin/")


def _patterns(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[str]:
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns, address)
        else:
            yield address


def all_addresses() -> list[Address]:
    """Every address that the portal serves. Fails on a regular expression that nobody filled in."""
    found = []
    for pattern in _patterns(get_resolver().url_patterns, "/"):
        if pattern in EXPRESSIONS:
            found.append(Address(EXPRESSIONS[pattern], ()))
            continue
        assert "(?P" not in pattern, f"add {pattern} to EXPRESSIONS"
        template = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern)
        for name, value in HARMLESS.items():
            template = template.replace(f"{{{name}}}", value)
        found.append(Address(template, tuple(re.findall(r"\{(\w+)\}", template))))
    return found
