"""What happens around allauth's sign-up: a workspace with the account, welcome credit once the address is verified."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.encoding import punycode
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from portal.lib.http import client_address
from portal.lib.redirects import remember_language
from portal.workflows import open_account, welcome


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    # allauth's own, in words that say what to do. One answer for unknown addresses and wrong passwords.
    error_messages = DefaultAccountAdapter.error_messages | {
        "account_inactive": _("This account is closed. Write to whoever runs this service."),
        "duplicate_email": _("This is your address already."),
        "email_password_mismatch": _("This address and this password do not belong together. Check both."),
        "enter_current_password": _("This is not your current password."),
        "incorrect_password": _("This is not your password."),
        "invalid_login": _("This address and this password do not belong together. Check both."),
        "too_many_login_attempts": _("Too many attempts did not work. Wait five minutes, then try again."),
        "rate_limited": _("Too many requests came at once. Wait a minute, then try again."),
        "max_email_addresses": _("Verify or cancel the change of address that is under way first."),
    }

    def clean_email(self, email: str) -> str:
        """The address; refused where no mail can be sent to it, which the validator alone does not see."""
        try:
            punycode(email.rpartition("@")[2])
        except UnicodeError as error:
            raise ValidationError(EmailValidator.message, code="invalid") from error
        cleaned: str = super().clean_email(email)
        return cleaned

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Links in mails lead to this service, whatever host the request that caused the mail had named."""
        links = {name: _at_home(value) for name, value in context.items() if name.endswith("_url")}
        super().send_mail(template_prefix, email, context | links)

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        user.locale = get_language() or ""
        saved: User = super().save_user(request, user, form, commit=commit)
        if commit:
            open_account(user=saved)
        return saved

    def set_password(self, user: User, password: str) -> None:
        # Only what changes: somebody may be editing the rest of the row.
        user.set_password(password)
        user.save(update_fields=["password"])

    def confirm_email(self, request: HttpRequest, email_address: Any) -> bool:
        # Both or neither: a link whose welcome failed must work the next time.
        with transaction.atomic():
            confirmed: bool = super().confirm_email(request, email_address)
            if confirmed:
                welcome(user=email_address.user)
        return confirmed

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Bring the language along to a browser that has not chosen one."""
        response: HttpResponse = super().post_login(request, user, **kwargs)
        if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES and user.locale:
            remember_language(response, user.locale)
        return response

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account_settings")

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request) or ""


def _at_home(address: str) -> str:
    """The same path and query at BASE_URL."""
    return settings.BASE_URL + urlsplit(address)._replace(scheme="", netloc="").geturl()
