from __future__ import annotations

from django.urls import path

from billing.api import views

urlpatterns = [path("account", views.AccountView.as_view(), name="api_account")]
