"""What billing refuses, and why."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError


class InsufficientCredit(DomainError):
    code = "insufficient_credit"
    status = 402
    message = _(
        "This needs up to %(needed)s set aside, and %(available)s is available. Nothing was charged. "
        "Shorten the text or add credit."
    )


class HoldNotOpen(DomainError):
    code = "hold_not_open"
    status = 409
    message = _("The money set aside for this job was settled before.")


class NoPrice(DomainError):
    code = "no_price"
    status = 503
    message = _("No price is in force. The operator has to set one. Nothing was charged.")


class AmountNotPositive(DomainError):
    code = "amount_not_positive"
    status = 422
    message = _("The amount has to be more than zero. Nothing was changed.")


class RefundTooHigh(DomainError):
    code = "refund_too_high"
    status = 409
    message = _("That is more than was charged and not given back yet. Nothing was changed.")


class PlanNotInForce(DomainError):
    code = "plan_not_in_force"
    status = 409
    message = _("This version of the plan is not in force at that time. Nothing was changed.")


class BudgetReached(DomainError):
    code = "budget_reached"
    status = 402
    message = _(
        "This needs up to %(needed)s set aside, and %(left)s of the monthly budget (%(whose)s) is left. "
        "Nothing was charged. Raise the budget or wait for the next month."
    )


class BudgetNotFound(DomainError):
    code = "budget_not_found"
    status = 404
    message = _("There is no such budget.")


class BudgetInvalid(DomainError):
    code = "budget_invalid"
    status = 422
    field = "monthly_micros"
    message = _(
        "A monthly budget is an amount from zero up, and the warning comes at 1 to 100 percent of it."
    )


class DifferenceNotFound(DomainError):
    code = "difference_not_found"
    status = 404
    message = _("There is no such difference, or it was explained before.")


class InvoiceCurrencyDiffers(DomainError):
    code = "invoice_currency_differs"
    status = 409
    message = _(
        "The plan's fee is in another currency than the workspace's credit. No invoice was made. "
        "Put the workspace on a plan in its own currency."
    )


class PeriodNotOver(DomainError):
    code = "period_not_over"
    status = 409
    message = _("This month is not over yet, in the workspace's time zone. No invoice was made.")


class LaterPeriodInvoiced(DomainError):
    code = "later_period_invoiced"
    status = 409
    message = _("A later month was invoiced already. No invoice was made: what came late is on the next one.")


class NotAnInvoice(DomainError):
    code = "not_an_invoice"
    status = 409
    message = _("Only a finalized invoice can be corrected by a credit note. Nothing was changed.")


class CreditNoteTooHigh(DomainError):
    code = "credit_note_too_high"
    status = 409
    message = _(
        "That is more than the invoice's total less what was credited before (%(left)s). Nothing was changed."
    )


class ReasonMissing(DomainError):
    code = "reason_missing"
    status = 422
    message = _("Say why. The reason is kept, and the customer reads it. Nothing was changed.")


class InvoicePdfUnavailable(DomainError):
    code = "invoice_pdf_unavailable"
    status = 503
    message = _(
        "PDF files cannot be made on this server: the operator has to install the Pango library. "
        "The invoice's page and its CSV file have the same amounts."
    )
