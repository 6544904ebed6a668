from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from portal.console import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="console"),
]
