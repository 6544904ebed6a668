"""The engine process is small: no Django, and the portal's packages stay out of it."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.architecture.sources import ROOT

SCRIPT = """
import importlib, json, pkgutil, sys
import tts.engine
for module in pkgutil.iter_modules(tts.engine.__path__, "tts.engine."):
    importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_no_engine_module_brings_django_or_a_database() -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    loaded = set(json.loads(outcome.stdout))
    assert "tts" in loaded
    assert (
        loaded & {"django", "rest_framework", "psycopg", "redis", "rq", "portal", "accounts", "billing"}
        == set()
    )
