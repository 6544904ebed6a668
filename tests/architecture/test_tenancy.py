"""No view and no endpoint of the API reads a tenant's rows but through a selector, which begins with the workspace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps

from tests.architecture.sources import APPS, ROOT, product_sources

MANAGERS = {"objects", "_default_manager", "_base_manager"}
SHORTCUTS = {"get_object_or_404", "get_list_or_404"}


def tenant_models() -> set[str]:
    """The models whose rows belong to a workspace, and the workspace itself."""
    ours = [model for app in APPS if app != "portal" for model in apps.get_app_config(app).get_models()]
    owned = {
        model.__name__
        for model in ours
        if any(f.attname == "workspace_id" for f in model._meta.concrete_fields)
    }
    return owned | {"Workspace"}


def modules_with_views() -> list[Path]:
    """Whatever answers requests: views, endpoints, and the pages of the portal itself."""
    return [
        path
        for path in product_sources(*APPS)
        if "views" in path.relative_to(ROOT).with_suffix("").parts
        or "api" in path.relative_to(ROOT).parts
        or path.stem.endswith("_views")
        or (path.parent == ROOT / "portal" and "HttpRequest" in path.read_text(encoding="utf-8"))
    ]


def direct_reads(source: str, models: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in MANAGERS:
            if isinstance(node.value, ast.Name) and node.value.id in models:
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id in SHORTCUTS:
            yield node.lineno, node.id


def test_no_view_reads_a_tenants_rows_by_itself() -> None:
    models = tenant_models()
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in modules_with_views()
        for line, what in direct_reads(path.read_text(encoding="utf-8"), models)
    ]
    assert found == []


def test_the_rule_looks_where_it_should() -> None:
    names = {str(path.relative_to(ROOT)) for path in modules_with_views()}
    assert {
        "tts/views/jobs.py",
        "tts/api/voices.py",
        "accounts/views.py",
        "portal/pages.py",
        "portal/console/views.py",
    } <= names
    assert {"Voice", "SynthesisJob", "ApiKey", "Hold", "UsageRecord", "Workspace"} <= tenant_models()
    assert "User" not in tenant_models()
    broken = "job = SynthesisJob.objects.get(pk=1)\nvoice = get_object_or_404(Voice, pk=2)\nme = User.objects.first()"
    assert list(direct_reads(broken, tenant_models())) == [
        (2, "get_object_or_404"),
        (1, "SynthesisJob.objects"),
    ]
