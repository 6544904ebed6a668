"""Version 1 of the REST API. Each app's endpoints stand beside its views."""

from __future__ import annotations

from django.urls import include, path

from portal import api_docs
from portal.logs.api import LogView
from portal.money.ledger_api import LedgerView
from portal.money.usage_api import UsageView
from portal.status.api import StatusView

urlpatterns = [
    path("", include("accounts.api.urls")),
    path("", include("billing.api.urls")),
    path("", include("tts.api.urls")),
    path("status", StatusView.as_view(), name="api_status"),
    path("log", LogView.as_view(), name="api_log"),
    path("usage", UsageView.as_view(), name="api_usage"),
    path("ledger", LedgerView.as_view(), name="api_ledger"),
    path("schema", api_docs.schema, name="api_schema"),
    path("docs", api_docs.docs, name="api_docs"),
]
