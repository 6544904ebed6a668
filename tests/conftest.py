"""Every test session gets its own PostgreSQL, Valkey and data folder before Django's settings are read.

pytest-django reads the settings before any conftest where pyproject.toml names them; so they are
named here instead.
"""

from __future__ import annotations

import atexit
import gc
import os
from typing import TYPE_CHECKING

import django
import hypothesis
import pytest
from django.conf import settings
from django.utils import translation

from tests.emptying import empty_after_tests_that_commit
from tests.servers import start_servers

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

if settings.configured:
    raise RuntimeError(
        "Unset DJANGO_SETTINGS_MODULE: the tests choose their settings after starting their servers."
    )

_servers = start_servers()
atexit.register(_servers.stop)
os.environ["DATABASE_URL"] = _servers.database_url
os.environ["REDIS_URL"] = _servers.redis_url
os.environ["VOICEPOOL_DATA"] = str(_servers.data_folder)
os.environ["TEST_DATABASE_TEMPLATE"] = _servers.database_template
os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings.test"
# How long an example takes says something about the machine, never about what is tested.
hypothesis.settings.register_profile(
    "untimed",
    parent=hypothesis.settings(),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("untimed")
# The conftests below this one may import models.
django.setup()
empty_after_tests_that_commit()

# People, workspaces, voices and jobs for every test that asks for them.
pytest_plugins = ["tests.cast"]


# With `-n`, these begin first: a process that comes to one of them last would work alone while the others are done.
# The browser's wait for the processor, the pool's for time, so they go well together. (make test ARGS=--durations=60
# tells what has become slow.)
LONGEST = (
    "tests/e2e/",
    "tests/pool/test_keeper.py",
    "tests/pool/test_node.py",
    "tests/pool/test_node_commands.py",
    "tests/pool/test_processes.py",
    "tests/embedded/test_stack.py",
    "tests/engine/test_kokoro.py",
    "tests/pool/test_fair_share.py",
    "tests/chaos/",
    "tests/audio/test_intake_files.py",
    "tests/embedded/test_demonstration.py",
    "tests/engine/",
    "tests/security/",
    "tests/pool/",
    "tests/deploy/",
)
# One browser and one stack with the built-in engine serve all of these.
TOGETHER = "tests/e2e/"


def pytest_runtest_setup() -> None:
    """A request leaves its language to its thread: no test speaks the one of the test before."""
    translation.deactivate()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return

    def place(item: pytest.Item) -> int:
        return next(
            (place for place, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST)
        )

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector of garbage need not look through all of them again and again."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """A file's tests stay together, as `--dist loadfile` says, and so do the browser's."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    return Scheduling(config, log)


def pytest_xdist_setupnodes(config: pytest.Config, specs: list[object]) -> None:
    """With `-n`, the tests run in other processes: each starts servers of its own, and this one needs none."""
    _servers.stop()
    for name in (
        "DATABASE_URL",
        "REDIS_URL",
        "VOICEPOOL_DATA",
        "TEST_DATABASE_TEMPLATE",
        "DJANGO_SETTINGS_MODULE",
    ):
        os.environ.pop(name, None)
