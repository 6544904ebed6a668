"""The real clock sends what waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from accounts.models import Workspace
from tests.webhooks.double_of_a_customer import CustomersServer
from tests.webhooks.rows import happened, make_endpoint

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.django_db(transaction=True)
def test_the_clock_sends_what_waits(
    alice_workspace: Workspace, secure_server: CustomersServer, settings: Any
) -> None:
    _endpoint, secret = make_endpoint(alice_workspace, f"https://127.0.0.1:{secure_server.port}/hook")
    subject = happened(alice_workspace)
    address, _slash, _name = os.environ["DATABASE_URL"].rpartition("/")
    clock = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "clock"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": f"{address}/{settings.DATABASES['default']['NAME']}",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "WEBHOOK_CA_FILE": settings.WEBHOOKS["CA_FILE"],
        },
    )
    try:
        (received,) = secure_server.wait_for(1, timeout_s=120)
    finally:
        clock.send_signal(signal.SIGTERM)
        clock.wait(60)
    assert Webhook(secret).verify(received.body, received.headers)["data"]["id"] == subject
