"""Usage and Billing."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from portal.money import billing_views, ledger_views, plan_views, settings_views, usage_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("usage/", usage_views.usage, name="usage"),
    path("usage/budgets/", usage_views.budget_set, name="budget_set"),
    path("usage/budgets/<uuid:budget_id>/remove/", usage_views.budget_remove, name="budget_remove"),
    path("billing/", billing_views.billing, name="billing"),
    path("billing/ledger/", ledger_views.ledger, name="ledger"),
    path("billing/plan/", plan_views.plans, name="plans"),
    path("billing/plan/<slug:plan_code>/", plan_views.plan_change, name="plan_change"),
    path("billing/settings/", settings_views.billing_settings, name="billing_settings"),
    path("billing/settings/billed/", settings_views.billed_party_set, name="billed_party_set"),
    path("billing/settings/notice/", settings_views.low_balance_set, name="low_balance_set"),
    path("billing/settings/time-zone/", settings_views.time_zone_set, name="time_zone_set"),
]
