"""Where a problem's `type` leads: every code that the API may answer is explained there."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from portal.error_codes import documented_errors
from portal.lib.errors import DomainError
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


def test_no_message_writes_a_number_past_the_one_place_that_sets_its_thousands_apart() -> None:
    # All of them are loaded by then: "%d" would write 200000.
    assert documented_errors()
    classes, found = [DomainError], []
    while classes:
        error = classes.pop()
        classes += error.__subclasses__()
        if re.search(r"%\(\w+\)\d*d", str(error.message)):
            found.append(error.__name__)
    assert found == []
