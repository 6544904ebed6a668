"""The events that customers can hear of, and the words for all that stands on a delivery. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class EventType:
    """`name` is stable: programs decide by it."""

    name: str
    label: Promise


JOB_SUCCEEDED: Final = "job.succeeded"
JOB_FAILED: Final = "job.failed"
JOB_CANCELED: Final = "job.canceled"
BUDGET_SOFT_REACHED: Final = "budget.soft_reached"
BUDGET_HARD_REACHED: Final = "budget.hard_reached"
BALANCE_LOW: Final = "balance.low"
INVOICE_FINALIZED: Final = "invoice.finalized"
PAYMENT_SUCCEEDED: Final = "payment.succeeded"
PAYMENT_FAILED: Final = "payment.failed"
# Sent when somebody asks for a test, to every endpoint whatever it chose.
PING: Final = "ping"

EVENT_TYPES: Final = (
    EventType(JOB_SUCCEEDED, _("A job was spoken to its end")),
    EventType(JOB_FAILED, _("A job failed")),
    EventType(JOB_CANCELED, _("A job was canceled")),
    EventType(BUDGET_SOFT_REACHED, _("A budget reached its warning mark")),
    EventType(BUDGET_HARD_REACHED, _("A budget is used up")),
    EventType(BALANCE_LOW, _("The balance fell below the mark of its notice")),
    EventType(INVOICE_FINALIZED, _("An invoice is final")),
    EventType(PAYMENT_SUCCEEDED, _("A payment was made")),
    EventType(PAYMENT_FAILED, _("A payment was refused, or its time ran out")),
)
EVENT_NAMES: Final = tuple(one.name for one in EVENT_TYPES)

# Why a delivery has no answer, or was given up.
ERRORS: Final[dict[str, Promise]] = {
    "url_invalid": _("The address is not complete or has characters that no address has."),
    "url_scheme": _("The address must begin with https://."),
    "url_credentials": _("The address must not contain a name or password."),
    "url_port": _("This port is not called. Use 443, or one from 1024 on that no other service is known by."),
    "address_refused": _("The host leads to an address that is not public. It was not called."),
    "host_not_found": _("The host’s name could not be resolved."),
    "connection_failed": _("No connection, or it broke off before the answer."),
    "tls_failed": _("The certificate is not valid for this host, or TLS failed."),
    "timeout": _("No answer within 13 seconds."),
    "answer_invalid": _("The answer is not HTTP."),
    "answer_not_2xx": _("The answer was not a success (2xx). Redirects are not followed."),
    "endpoint_off": _("The endpoint was switched off."),
    "lost": _("It was tried again and again, and no outcome was noted."),
}
