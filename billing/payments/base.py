"""What a payment provider does for us, and what it says. No database here: services store what it says."""

from __future__ import annotations

import enum
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.utils.functional import Promise

from billing.errors import PaymentProviderUnknown, WebhookRefused


class ProviderUnreachable(Exception):
    """It did not answer, or not in a way that tells: what it did is not known. `code`: why, for the log."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class ProviderRefused(Exception):
    """It said no, and moved no money. `code`: its own, short and stable."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class ReportState(enum.Enum):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True)
class SavedMethod:
    """A way to pay that the provider keeps. `label`: what its owner knows it by."""

    customer: str
    reference: str
    label: str


@dataclass(frozen=True)
class PaymentRequest:
    """A payment of ours. Its id is the provider's idempotency key, so all of this is the same each time it is sent."""

    payment_id: uuid.UUID
    workspace_id: uuid.UUID
    amount_micros: int
    currency: str
    description: str
    created_at: datetime
    return_url: str
    # The provider's own name for it; empty until it has given one.
    reference: str = ""
    # The saved method that is charged, with its owner at the provider; empty: the customer pays on a page.
    customer: str = ""
    method: str = ""
    saves_method: bool = False


@dataclass(frozen=True)
class PaymentReport:
    """What the provider says about a payment now. Amount and currency are its own, for comparing with ours."""

    state: ReportState
    reference: str = ""
    pay_url: str = ""
    amount_micros: int = 0
    currency: str = ""
    failure_code: str = ""
    method: SavedMethod | None = None


@dataclass(frozen=True)
class RefundRequest:
    """A refund of ours. Its id is the provider's idempotency key."""

    refund_id: uuid.UUID
    payment_id: uuid.UUID
    payment_reference: str
    amount_micros: int
    currency: str
    created_at: datetime
    reference: str = ""
    # It was sent before, and it is not known what became of it.
    is_repeated: bool = False


@dataclass(frozen=True)
class RefundReport:
    state: ReportState
    reference: str = ""
    failure_code: str = ""
    amount_micros: int = 0


@dataclass(frozen=True)
class DisputeReport:
    """How a dispute stands, whichever of its events was the first to arrive."""

    reference: str
    amount_micros: int
    withdrawn: bool
    reinstated: bool
    # None while it is open.
    won: bool | None


@dataclass(frozen=True)
class IncomingEvent:
    """A message whose signature was right: what it is called, and the thing that it is about, never what it says."""

    event_id: str
    kind: str
    subject: str


@dataclass(frozen=True)
class PaymentFinding:
    payment_id: uuid.UUID
    report: PaymentReport


@dataclass(frozen=True)
class RefundFinding:
    """`refund_id` None: somebody refunded it at the provider, without us."""

    payment_id: uuid.UUID
    refund_id: uuid.UUID | None
    report: RefundReport


@dataclass(frozen=True)
class DisputeFinding:
    payment_id: uuid.UUID
    report: DisputeReport


@dataclass(frozen=True)
class MethodFinding:
    workspace_id: uuid.UUID
    method: SavedMethod


Finding = PaymentFinding | RefundFinding | DisputeFinding | MethodFinding


class PaymentProvider(ABC):
    """One way to pay. Every call that moves money may be repeated: the ids in it are the provider's idempotency keys.

    Each call raises ProviderUnreachable where it is not known what the provider did, and ProviderRefused where it is
    known that it did nothing.
    """

    name: ClassVar[str]
    title: ClassVar[str | Promise]
    # Recorded by an operator, who saw the money; nobody is asked.
    is_recorded: ClassVar[bool] = False
    is_test: ClassVar[bool] = False
    saves_methods: ClassVar[bool] = False
    # None: every currency.
    currencies: ClassVar[frozenset[str] | None] = None
    # What a message of its is answered with, once it is stored.
    acknowledgement: ClassVar[str] = ""

    @abstractmethod
    def begin(self, request: PaymentRequest) -> PaymentReport:
        """Have the customer pay on a page (`pay_url`), or charge the saved method that the request names."""

    @abstractmethod
    def ask(self, request: PaymentRequest) -> PaymentReport:
        """How a payment stands, also one that may never have reached the provider."""

    @abstractmethod
    def withdraw(self, request: PaymentRequest) -> PaymentReport:
        """Give up a payment that was not made in time, and say how it stands then: it may just have been paid."""

    @abstractmethod
    def refund(self, request: RefundRequest) -> RefundReport:
        """Pay money back. Repeated, it says how that refund stands."""

    def begin_saving(self, workspace_id: uuid.UUID, customer: str, return_url: str) -> str:
        """The address of the provider's page on which a customer saves a way to pay."""
        raise PaymentProviderUnknown

    def forget_method(self, method: SavedMethod) -> None:
        """Have the provider forget a saved way to pay. What it does not know is forgotten."""
        return

    def read_event(self, body: bytes, headers: Mapping[str, str]) -> IncomingEvent:
        """The message in a request to our webhook, once its signature over the raw body is checked.

        Raises WebhookRefused: a wrong signature, an old timestamp, or no message at all.
        """
        raise WebhookRefused

    def look_at(self, kind: str, subject: str) -> Finding | None:
        """How the thing that an event is about stands now, asked of the provider; None: it is none of ours."""
        return None
