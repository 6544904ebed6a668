from __future__ import annotations

import uuid

import pytest

from billing.models import BillingProfile, GrantKind
from tests.billing.invoicing.months import YUAN, money


@pytest.fixture
def customer(db: None) -> uuid.UUID:
    """A workspace with 100 yuan paid, in UTC, with tax of 6 % on top."""
    workspace_id = uuid.uuid4()
    money(workspace_id, 100 * YUAN, GrantKind.PAID)
    BillingProfile.objects.create(
        workspace_id=workspace_id, name="Acme", tax_rate_basis_points=600, tax_inclusive=False
    )
    return workspace_id
