"""Every test session gets its own PostgreSQL, Valkey and data folder before Django's settings are read.

pytest-django reads the settings before any conftest where pyproject.toml names them; so they are
named here instead.
"""

from __future__ import annotations

import atexit
import os

import django
import pytest
from django.conf import settings

from tests.servers import start_servers

if settings.configured:
    raise RuntimeError(
        "Unset DJANGO_SETTINGS_MODULE: the tests choose their settings after starting their servers."
    )

_servers = start_servers()
atexit.register(_servers.stop)
os.environ["DATABASE_URL"] = _servers.database_url
os.environ["REDIS_URL"] = _servers.redis_url
os.environ["VOICEPOOL_DATA"] = str(_servers.data_folder)
os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings.test"
# The conftests below this one may import models.
django.setup()

# People, workspaces, voices and jobs for every test that asks for them.
pytest_plugins = ["tests.cast"]


def pytest_xdist_setupnodes(config: pytest.Config, specs: list[object]) -> None:
    """With `-n`, the tests run in other processes: each starts servers of its own, and this one needs none."""
    _servers.stop()
    for name in ("DATABASE_URL", "REDIS_URL", "VOICEPOOL_DATA", "DJANGO_SETTINGS_MODULE"):
        os.environ.pop(name, None)
