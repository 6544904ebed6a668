"""Where a problem's `type` leads: every code that the API may answer is explained there."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.api.contract import openapi


def documented_codes() -> set[str]:
    return {
        code
        for methods in openapi()["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for code in re.findall(r"^- `(\w+)`:", response.get("description", ""), re.MULTILINE)
    }


@pytest.mark.django_db
def test_every_code_of_the_api_is_explained_where_its_type_leads() -> None:
    codes = documented_codes()
    assert {
        "invalid_input",
        "insufficient_credit",
        "clip_too_short",
        "text_empty",
        "not_authenticated",
    } <= codes
    page = Client().get("/docs/errors").content.decode()
    assert sorted(code for code in codes if f'id="{code}"' not in page) == []
