"""openapi.yaml tells the truth: it is what the code says, and it knows every address of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from tests.api.contract import OPENAPI_FILE, openapi

# Not operations: the description itself.
DESCRIPTION = {"/api/v1/schema", "/api/v1/docs"}


def addresses(
    patterns: list[URLPattern | URLResolver], prefix: str = "/"
) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, address)
        else:
            yield address, pattern


def test_the_committed_file_is_what_the_code_says() -> None:
    """When this fails, the API changed: look at what `make openapi` changes in the file, and commit it."""
    with translation.override("en"):
        generated = SchemaGenerator().get_schema(request=None, public=True)
    validate_schema(generated)
    assert yaml.load(yaml.safe_dump(generated), yaml.CSafeLoader) == openapi()


def test_every_address_of_the_api_is_described_and_nothing_else() -> None:
    served = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", address), method)
        for address, pattern in addresses(get_resolver().url_patterns)
        if address.startswith("/api/") and address not in DESCRIPTION
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(pattern.callback.cls, method)  # type: ignore[union-attr]
    }
    described = {(path, method) for path, methods in openapi()["paths"].items() for method in methods}
    assert served == described


def test_every_operation_needs_a_key_and_says_what_it_may_refuse() -> None:
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["security"] == [{"apiKey": []}], where
            assert {"401", "403", "429", "503"} <= set(operation["responses"]), where
            assert operation["summary"], where
            if "{" in path:
                assert "404" in operation["responses"], where
            for status, response in operation["responses"].items():
                if int(status) >= 400 and status != "416":
                    assert list(response["content"]) == ["application/problem+json"], where
                    assert response["description"].startswith("- `"), where


def test_the_file_is_served_as_it_is() -> None:
    response = Client().get("/api/v1/schema")
    assert (response.status_code, response["Content-Type"]) == (200, "application/yaml")
    assert b"".join(response.streaming_content) == OPENAPI_FILE.read_bytes()  # type: ignore[attr-defined]


def test_the_reference_page_loads_nothing_from_elsewhere_and_runs_nothing_inline() -> None:
    response = Client().get("/api/v1/docs")
    page = response.content.decode()
    assert response.status_code == 200
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?://", page)
