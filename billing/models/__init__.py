from billing.models.hold import Hold, HoldState
from billing.models.ledger import (
    CreditAccount,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    TransactionKind,
)
from billing.models.price import PriceVersion
from billing.models.usage import UsageRecord

__all__ = [
    "CreditAccount",
    "Hold",
    "HoldState",
    "LedgerAccount",
    "LedgerEntry",
    "LedgerTransaction",
    "PriceVersion",
    "TransactionKind",
    "UsageRecord",
]
