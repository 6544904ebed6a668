from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from portal.console import (
    customer_views,
    device_views,
    job_views,
    log_views,
    models_views,
    money_views,
    payment_views,
    plan_views,
    price_views,
    views,
    voucher_views,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="console"),
    path("devices/", device_views.devices, name="console_devices"),
    path("devices.json", device_views.devices_json, name="console_devices_json"),
    path("devices/<int:device_id>/", device_views.device, name="console_device"),
    path("devices/<int:device_id>/<slug:act>/", device_views.device_act, name="console_device_act"),
    path("models/", models_views.models, name="console_models"),
    path("models/<str:engine>/share/", models_views.model_share, name="console_model_share"),
    path("queue/", views.queue, name="console_queue"),
    path("jobs/", job_views.jobs, name="console_jobs"),
    path("jobs/<uuid:job_id>/", job_views.job, name="console_job"),
    path("jobs/<uuid:job_id>/<slug:act>/", job_views.job_act, name="console_job_act"),
    path("log/", log_views.log, name="console_log"),
    path("customers/", customer_views.customers, name="console_customers"),
    path("customers/<uuid:workspace_id>/", customer_views.customer, name="console_customer"),
    path(
        "customers/<uuid:workspace_id>/<slug:act>/", customer_views.customer_act, name="console_customer_act"
    ),
    path("money/", money_views.money, name="console_money"),
    path("money/reconcile/", money_views.reconcile, name="console_reconcile"),
    path("money/differences/<int:difference_id>/", money_views.difference, name="console_difference"),
    path("money/pending/", money_views.pending, name="console_pending"),
    path("money/pending/<uuid:act_id>/<slug:decision>/", money_views.pending_act, name="console_pending_act"),
    path("money/vouchers/", voucher_views.vouchers, name="console_vouchers"),
    path("money/vouchers/new/", voucher_views.voucher_new, name="console_voucher_new"),
    path("money/vouchers/<uuid:batch_id>/void/", voucher_views.voucher_void, name="console_voucher_void"),
    path("payments/<uuid:payment_id>/refund/", payment_views.payment_refund, name="console_payment_refund"),
    path("prices/", price_views.prices, name="console_prices"),
    path("prices/new/", price_views.price_new, name="console_price_new"),
    path("plans/", plan_views.plans, name="console_plans"),
    path("plans/new/", plan_views.plan_new, name="console_plan_new"),
    path("plans/<slug:code>/", plan_views.plan, name="console_plan"),
    path("plans/<slug:code>/move/", plan_views.plan_move, name="console_plan_move"),
    path("audit/", views.audit, name="console_audit"),
]
