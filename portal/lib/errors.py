"""The one base of every error that a customer may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.lib.display import count_text


class DomainError(Exception):
    """A refusal or a failure with a stable code, an HTTP status and a message for people.

    Subclasses set `code`, `status` and `message`. `message` is a lazily translated text with
    `%(name)s` places, filled from the keyword arguments, whole numbers with their thousands set apart; it says
    what happened and what to do, and holds nothing secret. `retry_after_s` becomes the Retry-After header.
    `field` names the input at fault.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    message: ClassVar[str | Promise] = _("Something went wrong.")
    field: str = ""
    retry_after_s: int | None = None

    def __init__(self, *, field: str = "", retry_after_s: int | None = None, **params: Any) -> None:
        self.params = params
        if field:
            self.field = field
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s
        super().__init__(self.code)

    def details(self) -> dict[str, Any]:
        """Further members of the problem that the API answers with: plain JSON values, for programs."""
        return {}

    def text(self) -> str:
        """The message in the language that is active now."""
        message = str(self.message)
        return message % _readable(self.params) if self.params else message


class _Count(int):
    """A whole number that stands in a message as people read it: 200,000 and not 200000."""

    def __str__(self) -> str:
        return count_text(int(self))


def _readable(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _Count(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in params.items()
    }


class NotFound(DomainError):
    """Missing, or another workspace's: the two must not be told apart."""

    code = "not_found"
    status = 404
    message = _("There is nothing at this address, or it is not yours.")


class Conflict(DomainError):
    code = "conflict"
    status = 409
    message = _("This was changed in the meantime. Reload and try again.")


class InvalidInput(DomainError):
    code = "invalid_input"
    status = 400
    message = _("This is not valid: %(reason)s")


class ServiceUnavailable(DomainError):
    code = "service_unavailable"
    status = 503
    message = _("The service cannot do this right now. Nothing was charged. Try again in a moment.")
    retry_after_s = 5
