"""Invoices: a period in the workspace's own time zone, computed once; immutable once they have a number."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class BillingProfile(models.Model):
    """Who is billed, and how. What an invoice said stays on the invoice."""

    workspace_id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=200, blank=True)
    address = models.TextField(max_length=1000, blank=True)
    tax_number = models.CharField(max_length=60, blank=True)
    email = models.EmailField(blank=True)
    # In hundredths of a percent: 600 is 6 %.
    tax_rate_basis_points = models.PositiveIntegerField(default=0)
    # Whether prices contain the tax already.
    tax_inclusive = models.BooleanField(default=True)
    # People are told when less than that is available; None: never.
    low_balance_micros = models.BigIntegerField(null=True)
    # Days until an invoice is due.
    payment_days = models.PositiveSmallIntegerField(default=14)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(tax_rate_basis_points__lte=10_000), name="tax_rate_sane"),
        ]


class InvoiceKind(models.TextChoices):
    INVOICE = "invoice", _("Invoice")
    CREDIT_NOTE = "credit_note", _("Credit note")


class InvoiceState(models.TextChoices):
    DRAFT = "draft", _("Draft")
    FINAL = "final", _("Final")


class Invoice(models.Model):
    """The document of a month, which corrects none, or a credit note that corrects one.

    Amounts are micros of `currency`, each the sum of what the ledger moved; fee and tax are whole cents
    (billing.invoicing). A month in which more was given back than charged ends in a credit note: its lines, fee, usage
    and discount are signed as an invoice's. Net, tax and total of every credit note say what goes back: no total is
    negative.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=12, choices=InvoiceKind.choices, default=InvoiceKind.INVOICE)
    state = models.CharField(max_length=8, choices=InvoiceState.choices, default=InvoiceState.DRAFT)
    # Gapless within a series; given when it is finalized.
    number = models.PositiveBigIntegerField(null=True)
    series = models.CharField(max_length=12, default="", blank=True)
    # The invoice that a credit note corrects, and why; a month's own document corrects none by name.
    corrects = models.ForeignKey("self", on_delete=models.PROTECT, related_name="credit_notes", null=True)
    reason = models.CharField(max_length=300, blank=True)
    # [start, end) as instants, computed once, in the zone that the workspace had then.
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    time_zone = models.CharField(max_length=50)
    currency = models.CharField(max_length=3)
    # Who was billed by whom, as it stood when the invoice was finalized.
    parties = models.JSONField(default=dict)
    tax_rate_basis_points = models.PositiveIntegerField(default=0)
    tax_inclusive = models.BooleanField(default=True)
    fee_micros = models.BigIntegerField(default=0)
    usage_micros = models.BigIntegerField(default=0)
    # What included, promotional and voucher credit covered of the usage.
    discount_micros = models.BigIntegerField(default=0)
    net_micros = models.BigIntegerField(default=0)
    tax_micros = models.BigIntegerField(default=0)
    total_micros = models.BigIntegerField(default=0)
    # What was owed when the invoice was finalized, and the rest of the total: what credit paid. The latter is negative
    # where more was owed than the total (billing.services.invoices).
    prepaid_micros = models.BigIntegerField(default=0)
    due_micros = models.BigIntegerField(default=0)
    # Of what was due: what came in since. A trigger keeps it.
    paid_micros = models.BigIntegerField(default=0)
    # The newest usage record and ledger entry when it was finalized: later ones are another invoice's, whatever their
    # day (billing.services.invoice_lines).
    last_usage_id = models.BigIntegerField(default=0)
    last_entry_id = models.BigIntegerField(default=0)
    finalized_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "period_start"],
                condition=Q(corrects__isnull=True),
                name="one_document_per_period",
            ),
            models.UniqueConstraint(
                fields=["series", "number"], condition=Q(number__isnull=False), name="invoice_number_once"
            ),
            models.CheckConstraint(
                condition=Q(state="draft", number__isnull=True) | Q(state="final", number__isnull=False),
                name="final_invoices_have_numbers",
            ),
            models.CheckConstraint(
                condition=Q(state="draft") | Q(total_micros__gte=0), name="final_total_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(paid_micros__gte=0) & Q(paid_micros__lte=F("due_micros")),
                name="paid_within_due",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace_id", "-period_start"], name="invoice_by_workspace"),
            models.Index(
                fields=["workspace_id", "finalized_at"],
                condition=Q(state="final", due_micros__gt=F("paid_micros")),
                name="invoice_open",
            ),
            models.Index(fields=["-finalized_at"], condition=Q(state="final"), name="invoice_newest"),
        ]


class LineKind(models.TextChoices):
    FEE = "fee", _("Monthly fee")
    USAGE = "usage", _("Speech")
    REFUND = "refund", _("Given back")
    DISCOUNT = "discount", _("Covered by credit given")


class InvoiceLine(models.Model):
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="lines")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=LineKind.choices)
    day = models.DateField(null=True)
    device_class = models.CharField(max_length=30, blank=True)
    # The plan's name for a fee, else empty.
    description = models.CharField(max_length=200, blank=True)
    gpu_ms = models.BigIntegerField(default=0)
    audio_ms = models.BigIntegerField(default=0)
    amount_micros = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invoice", "position"], name="invoice_line_once"),
        ]


class InvoiceSeries(models.Model):
    """The last number given in a series. Its row's lock makes the numbers gapless."""

    series = models.CharField(primary_key=True, max_length=12)
    last_number = models.PositiveBigIntegerField(default=0)
