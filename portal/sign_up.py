"""What happens around allauth's sign-up: a workspace with the account, welcome credit once the address is verified."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.utils.translation import get_language

from accounts.models import User
from portal.lib.http import client_address
from portal.workflows import open_account, welcome


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        user.locale = get_language() or ""
        saved: User = super().save_user(request, user, form, commit=commit)
        if commit:
            open_account(user=saved)
        return saved

    def confirm_email(self, request: HttpRequest, email_address: Any) -> bool:
        confirmed: bool = super().confirm_email(request, email_address)
        if confirmed:
            welcome(user=email_address.user)
        return confirmed

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request) or ""
