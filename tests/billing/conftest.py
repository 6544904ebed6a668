from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from billing.models import PriceVersion
from tests.billing.books import grant
from tests.billing.payers import alipay, provider_server, stripe

__all__ = ["alipay", "provider_server", "stripe"]


@pytest.fixture
def workspace_id(db: None) -> uuid.UUID:
    """A workspace with 1,000 micros to spend."""
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    return workspace_id


@pytest.fixture
def price(db: None) -> PriceVersion:
    return PriceVersion.objects.create(
        number=1,
        interactive_gpu_second_micros=12_000,
        standard_gpu_second_micros=8_000,
        batch_gpu_second_micros=4_000,
        effective_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
