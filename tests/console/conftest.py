from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from tests.cast import client_of
from tests.console.rows import somebody


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
