"""Answers of the API held against openapi.yaml: status, content type, and every member of the body."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

OPENAPI_FILE = Path(__file__).resolve().parent.parent.parent / "openapi.yaml"


@cache
def openapi() -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(OPENAPI_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return document


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The operation that the file describes for a request; None where it describes none."""
    for template, operations in openapi()["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, path):
            found: dict[str, Any] | None = operations.get(method.lower())
            return found
    return None


@cache
def _closed_components() -> dict[str, Any]:
    """The components with every object closed: a member that is not described is an error."""
    components = copy.deepcopy(openapi()["components"])
    for schema in components["schemas"].values():
        if schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
    return {"components": components}


def assert_described(method: str, path: str, response: Any) -> None:
    """Fail unless openapi.yaml describes this answer. Methods and paths that it does not know are not its affair."""
    operation = operation_of(method, path.partition("?")[0])
    if operation is None:
        return
    where = f"{method} {path} answered {response.status_code}"
    described = operation["responses"].get(str(response.status_code))
    assert described is not None, f"{where}, which openapi.yaml does not know"
    content = described.get("content")
    if not content:
        assert response.streaming or response.content == b"", f"{where} with a body that is not described"
        return
    media_type = response["Content-Type"].partition(";")[0]
    assert media_type in content, f"{where} as {media_type}; described are {sorted(content)}"
    if media_type.endswith("json"):
        validator = Draft202012Validator({**_closed_components(), **content[media_type]["schema"]})
        errors = [error.message for error in validator.iter_errors(json.loads(response.content))]
        assert errors == [], where
        if media_type == "application/problem+json":
            code = response.json()["code"]
            assert f"`{code}`" in described["description"], f"{where} with {code}, which is not described"
