"""The API described: the OpenAPI file as it is committed, and a page to read it."""

from __future__ import annotations

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def schema(request: HttpRequest) -> FileResponse:
    """openapi.yaml. `make openapi` writes it; a test proves that it is what the code says."""
    return FileResponse((settings.BASE_DIR / "openapi.yaml").open("rb"), content_type="application/yaml")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI on our own files: works offline and under the strict content security policy."""
    return render(request, "portal/api_docs.html")
