from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.logs.writer import RequestLogWriter, request_log


@pytest.fixture
def writer() -> Iterator[RequestLogWriter]:
    """This process's writer, empty: what earlier tests asked for is not this test's."""
    request_log().clear()
    yield request_log()
    request_log().clear()
