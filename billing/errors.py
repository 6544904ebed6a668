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


class AmountInvalid(DomainError):
    code = "amount_invalid"
    status = 422
    message = _("This is not an amount of money. Write a number such as 50 or 12.50. Nothing was changed.")


class AmountTooPrecise(DomainError):
    """It cannot be paid: the currency has no coin so small."""

    code = "amount_too_precise"
    status = 422
    message = _("%(currency)s has no coin so small. Write the amount in whole cents. Nothing was changed.")


class AmountOutOfRange(DomainError):
    code = "amount_out_of_range"
    status = 422
    message = _(
        "One payment can be from %(least)s to %(most)s. Choose an amount between them. Nothing was charged."
    )


class CurrencyNotAccepted(DomainError):
    """Another currency than the account's, or one that the provider does not take."""

    code = "currency_not_accepted"
    status = 422
    message = _("This account is kept in %(currency)s. Pay in that currency. Nothing was charged.")


class PaymentProviderUnknown(DomainError):
    code = "payment_provider_unknown"
    status = 422
    message = _("This way to pay is not offered here. Choose another one. Nothing was charged.")


class IdempotencyKeyReused(DomainError):
    code = "idempotency_key_reused"
    status = 409
    message = _("This request was made before with other contents. Reload the page and try again.")


class InvoiceNotPayable(DomainError):
    code = "invoice_not_payable"
    status = 409
    message = _("There is nothing to pay on this invoice, or a payment is on its way. Nothing was charged.")


class PaymentReferenceUsed(DomainError):
    code = "payment_reference_used"
    status = 409
    message = _("A payment with this reference was recorded before. Look it up. Nothing was changed.")


class PaymentReferenceMissing(DomainError):
    code = "payment_reference_missing"
    status = 422
    message = _("Write down the bank’s reference or the number of the receipt. Nothing was changed.")
    field = "reference"


class PaymentNotRefundable(DomainError):
    code = "payment_not_refundable"
    status = 409
    message = _("Only a payment that arrived can be refunded. Nothing was changed.")


class RefundExceedsPayment(DomainError):
    """More than was paid and is still ours, or than is left of the credit that the payment brought."""

    code = "refund_exceeds_payment"
    status = 409
    message = _("At most %(most)s of this payment can be refunded: the rest was spent or given back before.")


class ProviderUnavailable(DomainError):
    """Nothing was asked for that could have moved money."""

    code = "payment_provider_unavailable"
    status = 503
    message = _("The payment provider does not answer. Nothing was charged. Try again in some minutes.")
    retry_after_s = 60


class NoPaymentMethod(DomainError):
    code = "no_payment_method"
    status = 409
    message = _("No saved card is there to pay with. Save one first. Nothing was charged.")


class AutomaticTopUpInvalid(DomainError):
    code = "automatic_top_up_invalid"
    status = 422
    message = _("The monthly cap has to be at least one top-up, and no amount negative. Nothing was changed.")


class WebhookRefused(DomainError):
    """The signature is wrong, the timestamp old, or the body is none of the provider's. Nothing was stored."""

    code = "webhook_refused"
    status = 400
    message = _("This message is not from the payment provider, or too old. Nothing was stored.")


class VoucherMistyped(DomainError):
    code = "voucher_mistyped"
    status = 422
    message = _("This code has a typing error. Compare it with the voucher, letter by letter.")


class VoucherUnknown(DomainError):
    code = "voucher_unknown"
    status = 404
    message = _("There is no voucher with this code. Ask whoever gave it to you.")


class VoucherUsed(DomainError):
    code = "voucher_used"
    status = 409
    message = _("This voucher was redeemed before. Each works once.")


class VoucherExpired(DomainError):
    code = "voucher_expired"
    status = 410
    message = _("The time to redeem this voucher is over. Ask whoever gave it to you for a new one.")


class VoucherVoided(DomainError):
    code = "voucher_voided"
    status = 410
    message = _("This voucher was withdrawn. Ask whoever gave it to you for a new one.")


class TooManyVoucherTries(DomainError):
    code = "too_many_voucher_tries"
    status = 429
    message = _("Too many codes were tried in a short time. Try again in a minute.")
    retry_after_s = 60


class VoucherBatchInvalid(DomainError):
    code = "voucher_batch_invalid"
    status = 422
    message = _("A batch has from 1 to %(most)s vouchers. Nothing was made.")


class VoucherDatesInvalid(DomainError):
    code = "voucher_dates_invalid"
    status = 422
    message = _(
        "A batch of vouchers has to be redeemable in the future, and its credit has to last. Nothing was made."
    )


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


class PendingActDecided(DomainError):
    code = "pending_act_decided"
    status = 409
    message = _("This was confirmed or declined before. Nothing was changed.")


class SecondOperatorNeeded(DomainError):
    code = "second_operator_needed"
    status = 403
    message = _("Another operator has to confirm what you asked for. Nothing was changed.")


class PriceInvalid(DomainError):
    code = "price_invalid"
    status = 422
    message = _("A price is an amount from zero up, in force from now or later. Nothing was changed.")


class LowBalanceInvalid(DomainError):
    code = "low_balance_invalid"
    status = 422
    field = "below"
    message = _("The notice comes below an amount of more than zero. Nothing was changed.")


class TimeZoneUnknown(DomainError):
    code = "time_zone_unknown"
    status = 422
    field = "time_zone"
    message = _("There is no such time zone. Choose one of the list. Nothing was changed.")


class PlanFeeNotCovered(DomainError):
    code = "plan_fee_not_covered"
    status = 402
    message = _(
        "This plan costs %(fee)s a month, and %(available)s is available. Nothing was changed. Add credit first."
    )


class PlanChangeOver(DomainError):
    code = "plan_change_over"
    status = 409
    message = _(
        "This change of plan has begun, or another choice took its place. Nothing was changed. "
        "Reload the page to see which plan is in force."
    )
