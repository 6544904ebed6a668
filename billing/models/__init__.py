from billing.models.budget import AlertKind, BillingAlert, Budget, BudgetScope
from billing.models.finding import Difference, Reconciliation
from billing.models.grant import GRANT_PRIORITY, CreditGrant, GrantKind, GrantUse
from billing.models.hold import Hold, HoldState
from billing.models.invoice import (
    BillingProfile,
    Invoice,
    InvoiceKind,
    InvoiceLine,
    InvoiceSeries,
    InvoiceState,
    LineKind,
)
from billing.models.ledger import (
    CreditAccount,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    TransactionKind,
)
from billing.models.payment import (
    AutomaticTopUp,
    Dispute,
    DisputeState,
    Payment,
    PaymentMethod,
    PaymentPurpose,
    PaymentState,
    ProviderEvent,
    Refund,
)
from billing.models.pending_act import PendingAct, PendingActState
from billing.models.plan import Plan, PlanVersion, Subscription
from billing.models.plan_change import PlanChange, PlanChangeState
from billing.models.price import PriceVersion
from billing.models.usage import UsageDay, UsageRecord
from billing.models.voucher import Voucher, VoucherBatch, VoucherState

__all__ = [
    "GRANT_PRIORITY",
    "AlertKind",
    "AutomaticTopUp",
    "BillingAlert",
    "BillingProfile",
    "Budget",
    "BudgetScope",
    "CreditAccount",
    "CreditGrant",
    "Difference",
    "Dispute",
    "DisputeState",
    "GrantKind",
    "GrantUse",
    "Hold",
    "HoldState",
    "Invoice",
    "InvoiceKind",
    "InvoiceLine",
    "InvoiceSeries",
    "InvoiceState",
    "LedgerAccount",
    "LedgerEntry",
    "LedgerTransaction",
    "LineKind",
    "Payment",
    "PaymentMethod",
    "PaymentPurpose",
    "PaymentState",
    "PendingAct",
    "PendingActState",
    "Plan",
    "PlanChange",
    "PlanChangeState",
    "PlanVersion",
    "PriceVersion",
    "ProviderEvent",
    "Reconciliation",
    "Refund",
    "Subscription",
    "TransactionKind",
    "UsageDay",
    "UsageRecord",
    "Voucher",
    "VoucherBatch",
    "VoucherState",
]
