"""Usage and Billing."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from portal.money import (
    billing_views,
    invoice_views,
    ledger_views,
    method_views,
    payment_views,
    plan_views,
    settings_views,
    usage_views,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("usage/", usage_views.usage, name="usage"),
    path("usage/budgets/", usage_views.budget_set, name="budget_set"),
    path("usage/budgets/<uuid:budget_id>/remove/", usage_views.budget_remove, name="budget_remove"),
    path("billing/", billing_views.billing, name="billing"),
    path("billing/ledger/", ledger_views.ledger, name="ledger"),
    path("billing/plan/", plan_views.plans, name="plans"),
    path("billing/plan/<slug:plan_code>/", plan_views.plan_change, name="plan_change"),
    path(
        "billing/plan/changes/<uuid:change_id>/take-back/",
        plan_views.plan_change_take_back,
        name="plan_change_take_back",
    ),
    path("billing/settings/", settings_views.billing_settings, name="billing_settings"),
    path("billing/settings/billed/", settings_views.billed_party_set, name="billed_party_set"),
    path("billing/settings/notice/", settings_views.low_balance_set, name="low_balance_set"),
    path("billing/settings/time-zone/", settings_views.time_zone_set, name="time_zone_set"),
    path("billing/top-up/", payment_views.top_up, name="top_up"),
    path("billing/vouchers/", payment_views.voucher_redeem, name="voucher_redeem"),
    path("billing/payments/", payment_views.payments, name="payments"),
    # Providers send customers back to it: billing.services.payment_requests.
    path("billing/payments/<uuid:payment_id>/", payment_views.payment, name="payment"),
    path("billing/invoices/", invoice_views.invoices, name="invoices"),
    path("billing/invoices/<uuid:invoice_id>.pdf", invoice_views.invoice_file, name="invoice_file"),
    path("billing/invoices/<uuid:invoice_id>.csv", invoice_views.invoice_receipts, name="invoice_receipts"),
    path("billing/invoices/<uuid:invoice_id>/pay/", invoice_views.invoice_pay, name="invoice_pay"),
    path("billing/methods/", method_views.methods, name="methods"),
    path("billing/methods/save/", method_views.method_save, name="method_save"),
    path("billing/methods/<uuid:method_id>/default/", method_views.method_default, name="method_default"),
    path("billing/methods/<uuid:method_id>/remove/", method_views.method_remove, name="method_remove"),
    path("billing/automatic-top-up/", method_views.automatic_set, name="automatic_set"),
    # Where the test provider sends customers: billing.payments.pretend.
    path("billing/test-payment/<uuid:payment_id>/", method_views.test_payment, name="test_payment"),
    path("billing/test-method/", method_views.test_method, name="test_method"),
]
