"""A host that only serves pages has no torch: neither the web process nor any command ever asks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from django.db import connection
from packaging.utils import canonicalize_name

from tests.architecture.requirements import WEB, closure
from tests.architecture.sources import ROOT
from tests.architecture.test_imports import LOADS_MODELS

# The child has a database of its own to look at only where some test here asks for one.
pytestmark = pytest.mark.django_db


def database_url() -> str:
    """The test database's own address: the one in the environment names the database that it was made from."""
    database = connection.settings_dict
    where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return f"postgres://{database['USER']}:{database['PASSWORD']}@{where}"


def not_on_a_web_host() -> set[str]:
    """Modules that are installed here, but neither by deploy/requirements-web.txt nor by what it asks for."""
    installed = closure(WEB)
    return {
        module
        for module, owners in metadata.packages_distributions().items()
        if module not in sys.stdlib_module_names
        and not {str(canonicalize_name(owner)) for owner in owners} & installed
    }


@pytest.fixture(scope="module")
def web_process(django_db_setup: None, django_db_blocker: Any) -> dict[str, Any]:
    """What a web process did and loaded; see tests/architecture/web_process.py."""
    with django_db_blocker.unblock():
        url = database_url()
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.architecture.web_process"],
        input=json.dumps({"noted": sorted(LOADS_MODELS), "hidden": sorted(not_on_a_web_host())}),
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "portal.settings.test"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    result: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
    return result


def test_neither_pages_nor_commands_ask_for_a_model(web_process: dict[str, Any]) -> None:
    assert web_process["attempts"] == {}
    assert LOADS_MODELS.intersection(web_process["loaded"]) == set()


def test_the_process_really_was_the_portal(web_process: dict[str, Any]) -> None:
    """Or the test above would prove nothing."""
    statuses = web_process["statuses"]
    assert statuses["nobody /"] == 200
    assert statuses["nobody /studio/"] == 302
    assert statuses["operator /console/"] == 200
    assert statuses["operator /admin/"] == 200
    assert statuses["nobody /api/v1/schema"] == 200
    assert {
        name: status for name, status in statuses.items() if status >= 500 and "/readyz" not in name
    } == {}
    assert "tts.worker" in web_process["modules"]
    assert {"portal.management.commands.bootstrap", "tts.management.commands.gpu_node"} <= set(
        web_process["commands"]
    )


def test_its_own_requirements_are_enough_for_a_web_host(web_process: dict[str, Any]) -> None:
    """All of the above was done with nothing but deploy/requirements-web.txt and what that asks for."""
    hidden = not_on_a_web_host()
    assert {"torch", "playwright", "hypothesis"} <= hidden
    # This one is loaded by Python itself, before anything of ours.
    assert hidden.intersection(web_process["loaded"]) - {"_distutils_hack"} == set()
