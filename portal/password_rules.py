"""The rules of AUTH_PASSWORD_VALIDATORS, for the list that ticks itself off while a password is typed.

The password never leaves the browser before the form is sent: the browser gets the list of common ones instead.
"""

from __future__ import annotations

from functools import cache

from django.contrib.auth.password_validation import (
    CommonPasswordValidator,
    MinimumLengthValidator,
    get_default_password_validators,
)
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe


def minimum_length() -> int:
    """How many characters a password has at least."""
    for validator in get_default_password_validators():
        if isinstance(validator, MinimumLengthValidator):
            return validator.min_length
    return 0


@cache
def _common_passwords() -> list[str]:
    shortest = minimum_length()
    for validator in get_default_password_validators():
        if isinstance(validator, CommonPasswordValidator):
            return sorted(password for password in validator.passwords if len(password) >= shortest)
    return []


@require_safe
@cache_control(public=True, max_age=24 * 3600)
def common_passwords(request: HttpRequest) -> JsonResponse:
    """Django's list of common passwords, those that are long enough to be taken: about 20 kB."""
    return JsonResponse({"passwords": _common_passwords()})
