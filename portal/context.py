"""The frame around every page: navigation, balance, the state of the service, languages, colours.

Everything is found when the template asks for it, so an error page or a page for visitors costs no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import User, Workspace
from accounts.selectors.people import runs_workspace
from accounts.tenancy import memberships_of, workspace_of
from billing.errors import NoPrice
from billing.selectors.balances import Balance, balance_of
from portal import outbox
from portal.first_run import Step, first_run_steps
from portal.lib.display import LANGUAGE_NAMES
from portal.password_rules import minimum_length
from portal.service_state import ServiceState, service_state
from portal.speech_price import audio_ms_for

THEME_COOKIE = "theme"
FOLLOW_THE_SYSTEM = "system"


@dataclass(frozen=True)
class Choice:
    code: str
    name: str | Promise
    icon: str = ""


THEMES = (
    Choice(FOLLOW_THE_SYSTEM, _("Colours as the system"), "system"),
    Choice("light", _("Light colours"), "sun"),
    Choice("dark", _("Dark colours"), "moon"),
)


@dataclass(frozen=True)
class Place:
    """A place of the main navigation. Two plus three fit a phone's bottom bar."""

    url_name: str
    label: str | Promise
    icon: str
    address: str
    current: bool
    on_phone: bool


# URL name, label, icon, whether a phone's bottom bar shows it.
PLACES = (
    ("studio", _("Studio"), "studio", True),
    ("voices", _("Voices"), "voices", True),
    ("history", _("History"), "history", True),
    ("usage", _("Usage"), "usage", True),
    ("billing", pgettext_lazy("place", "Billing"), "billing", True),
    # On a phone it is reached by the account's menu: a sixth place would leave 60 pixels for each.
    ("developers", _("Developers"), "developers", False),
)
# Pages that belong to a place without having its address.
_BELONGS_TO = {
    "voice": "voices",
    "voice_new": "voices",
    "voice_draft": "voices",
    # A refusal is drawn where it was sent to.
    "voice_draft_speak": "voices",
    "voice_draft_save": "voices",
    "voice_rename": "voices",
    "voice_replace": "voices",
    "document": "studio",
    "document_text": "studio",
    "job": "history",
    "job_revise": "history",
    "log": "developers",
    "budget_set": "usage",
    "ledger": "billing",
    "plans": "billing",
    "plan_change": "billing",
    "plan_change_take_back": "billing",
    "billing_settings": "billing",
    "billed_party_set": "billing",
    "low_balance_set": "billing",
    "time_zone_set": "billing",
    "top_up": "billing",
    "voucher_redeem": "billing",
    "payments": "billing",
    "payment": "billing",
    "methods": "billing",
    "method_save": "billing",
    "automatic_set": "billing",
    "test_payment": "billing",
    "test_method": "billing",
    "invoices": "billing",
    "invoice_pay": "billing",
}


_SETTINGS = {
    "account_settings",
    "account_change_password",
    "account_email",
    "output_settings",
    "pronunciations",
    "pronunciation_save",
    "pronunciation_delete",
    "pronunciation_import",
    "pronunciation_restore",
}


class Frame:
    """What templates call `frame`. One per request."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def signed_in(self) -> bool:
        user = getattr(self._request, "user", None)
        return bool(user is not None and user.is_authenticated)

    @property
    def here(self) -> str:
        """Where a switch leads back to: this page, or the address of the form that it answers."""
        return self._request.get_full_path() if self._request.method == "GET" else self._request.path

    @cached_property
    def places(self) -> list[Place]:
        match = getattr(self._request, "resolver_match", None)
        here = match.url_name if match is not None else None
        here = _BELONGS_TO.get(here, here) if here else None
        return [
            Place(name, label, icon, reverse(name), name == here, on_phone)
            for name, label, icon, on_phone in PLACES
        ]

    @property
    def settings_current(self) -> bool:
        match = getattr(self._request, "resolver_match", None)
        return match is not None and match.url_name in _SETTINGS

    @cached_property
    def initial(self) -> str:
        """The letter in the account's circle."""
        user = self._request.user
        return (getattr(user, "display_name", "") or getattr(user, "email", "") or "?")[0].upper()

    @cached_property
    def workspace(self) -> Workspace | None:
        return workspace_of(self._request)

    @cached_property
    def runs_workspace(self) -> bool:
        """Whether who looks may see the settings that hold for everybody in the workspace."""
        user = self._request.user
        workspace = self.workspace
        return bool(user.is_authenticated and workspace and runs_workspace(user, workspace.pk))

    @cached_property
    def workspaces(self) -> list[Workspace]:
        user = self._request.user
        if not user.is_authenticated:
            return []
        return [membership.workspace for membership in memberships_of(user)]

    @cached_property
    def balance(self) -> Balance | None:
        """None for who has no workspace, and before the operator has set a price."""
        if self.workspace is None:
            return None
        try:
            return balance_of(self.workspace.pk)
        except NoPrice:
            return None

    @property
    def balance_audio_ms(self) -> int | None:
        """How much speech the balance buys about, in ms of audio; None where it is a debt, or nothing."""
        if self.balance is None or not self.balance.affordable_gpu_ms:
            return None
        return audio_ms_for(self.balance.affordable_gpu_ms)

    @property
    def welcome_audio_ms(self) -> int:
        """How much speech a new account's credit makes about, in ms of audio."""
        return audio_ms_for(settings.VOICEPOOL["WELCOME_GPU_SECONDS"] * 1000)

    @property
    def password_minimum(self) -> int:
        return minimum_length()

    @property
    def outbox_open(self) -> bool:
        return outbox.is_open(self._request)

    @cached_property
    def service(self) -> ServiceState:
        return service_state()

    @cached_property
    def first_run(self) -> list[Step]:
        if self.workspace is None:
            return []
        return first_run_steps(self.workspace, cast(User, self._request.user))

    @cached_property
    def languages(self) -> list[Choice]:
        return [Choice(code, LANGUAGE_NAMES[code]) for code, _name in settings.LANGUAGES]

    @property
    def themes(self) -> tuple[Choice, ...]:
        return THEMES

    @cached_property
    def theme_choice(self) -> str:
        chosen = self._request.COOKIES.get(THEME_COOKIE, FOLLOW_THE_SYSTEM)
        return chosen if chosen in ("light", "dark") else FOLLOW_THE_SYSTEM

    @property
    def theme(self) -> str:
        """For <html data-theme>: empty where the system decides."""
        return "" if self.theme_choice == FOLLOW_THE_SYSTEM else self.theme_choice


def frame(request: HttpRequest) -> dict[str, Frame]:
    return {"frame": Frame(request)}
