"""The forms of an account: allauth's with our words and one password field each, and the settings."""

from __future__ import annotations

from typing import Any

from allauth.account import forms as allauth_forms
from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.services.api_keys import MAX_NAME_LENGTH
from portal.lib.display import LANGUAGE_NAMES


def _plain(field: forms.Field, **attributes: str) -> None:
    """Take allauth's placeholders away: a label that vanishes while one types is no label."""
    field.widget.attrs.pop("placeholder", None)
    field.help_text = ""
    field.widget.attrs.update(attributes)


class SignUpForm(allauth_forms.SignupForm):  # type: ignore[misc]
    """E-mail and one password. Password managers and the button that shows it replace typing it twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")
        self.fields["password1"].label = _("Password")
        _plain(self.fields["email"], autocomplete="email", autocapitalize="off", spellcheck="false")
        _plain(self.fields["password1"], autocomplete="new-password", passwordrules="minlength: 10;")


class SignInForm(allauth_forms.LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("E-mail address")
        self.fields["password"].label = _("Password")
        _plain(self.fields["login"], autocomplete="username", autocapitalize="off", spellcheck="false")
        _plain(self.fields["password"], autocomplete="current-password")


class ChangePasswordForm(allauth_forms.ChangePasswordForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["password2"]
        self.fields["oldpassword"].label = _("Current password")
        self.fields["password1"].label = _("New password")
        for field in self.fields.values():
            _plain(field)


class ResetPasswordForm(allauth_forms.ResetPasswordForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")
        _plain(self.fields["email"], autocomplete="username", autocapitalize="off", spellcheck="false")


class ResetPasswordKeyForm(allauth_forms.ResetPasswordKeyForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["password2"]
        self.fields["password1"].label = _("New password")
        _plain(self.fields["password1"])


class ChangeEmailForm(allauth_forms.AddEmailForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("New e-mail address")
        _plain(self.fields["email"], autocapitalize="off", spellcheck="false")


class ReauthenticateForm(allauth_forms.ReauthenticateForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].label = _("Password")
        _plain(self.fields["password"])


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """Name and language of the person who is signed in."""

    locale = forms.ChoiceField(
        label=_("Language"),
        choices=[(code, LANGUAGE_NAMES[code]) for code, _name in settings.LANGUAGES],
        help_text=_("Of these pages and of the mails to you."),
    )

    class Meta:
        model = User
        fields = ["display_name", "locale"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["display_name"].widget.attrs["autocomplete"] = "name"


class NewKeyForm(forms.Form):
    """An API key's name and when it ends. What a name may be is judged by the service."""

    NEVER = "never"
    LIFETIMES = (
        (NEVER, _("Never")),
        ("30", _("After 30 days")),
        ("90", _("After 90 days")),
        ("365", _("After a year")),
    )

    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_LENGTH,
        help_text=_("What it is for, so that you recognise it later."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    lifetime_days = forms.ChoiceField(label=_("Expires"), choices=LIFETIMES)

    def clean_lifetime_days(self) -> int | None:
        chosen = self.cleaned_data["lifetime_days"]
        return None if chosen == self.NEVER else int(chosen)
