from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils.translation import override

from accounts.models import User
from tests.cast import client_of
from tests.console.rows import somebody


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A page that was asked for in Chinese leaves its language behind in the test's thread."""
    with override("en"):
        yield


@pytest.fixture
def operator(db: None) -> User:
    return somebody("operator@example.com", is_staff=True)


@pytest.fixture
def operator_client(operator: User) -> Client:
    """A browser in which somebody of the staff is signed in."""
    return client_of(operator)


@pytest.fixture
def superuser_client(db: None) -> Client:
    return client_of(somebody("root@example.com", is_staff=True, is_superuser=True))
