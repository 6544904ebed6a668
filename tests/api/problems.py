"""What refusal tests ask of an answer."""

from __future__ import annotations

from typing import Any


def assert_problem(response: Any, status: int, code: str, *, field: str | None = None) -> dict[str, Any]:
    """Fail unless the answer is this problem; returns its body."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"]
    assert body["request_id"] == response["X-Request-Id"]
    if field is not None:
        assert body["field"] == field
    return body
