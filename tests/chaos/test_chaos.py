"""A small storm of about a minute: the long one is `make chaos`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.servers import ROOT

# Those of the test session, which the run must not touch.
OF_THE_SESSION = ("DATABASE_URL", "REDIS_URL", "VOICEPOOL_DATA", "DJANGO_SETTINGS_MODULE", "SECRET_KEY")


@pytest.mark.slow
def test_nothing_is_lost_charged_twice_or_left_over_in_a_storm() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SESSION}
    run = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--jobs", "30", "--seconds", "10", "--seed", "5"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["bench"] == "chaos"
    figures = told["figures"]
    assert figures["jobs"] >= 30
    assert (figures["kills"], figures["redis_losses"], figures["postgres_kills"]) == (3, 1, 1)
    for name in ("lost", "charged_twice", "holds_left", "ledger_sum", "wrong_audio"):
        assert figures[name] == 0
