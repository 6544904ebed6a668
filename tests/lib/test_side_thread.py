"""Work beside a loop: one round at a time, and every task for itself."""

from __future__ import annotations

import threading

import pytest
from django.db import DatabaseError

from portal.lib.side_thread import SideThread, run_each


def test_a_task_that_fails_keeps_no_other_from_its_turn(db: None) -> None:
    done: list[str] = []

    def breaks() -> None:
        done.append("breaks")
        raise DatabaseError

    run_each([breaks, lambda: done.append("works")])
    assert done == ["breaks", "works"]


@pytest.mark.django_db(transaction=True)
def test_rounds_do_not_overlap_and_nobody_waits_for_one() -> None:
    side, gate, done = SideThread("test"), threading.Event(), []
    assert side.start([lambda: gate.wait(30), lambda: done.append(1)])
    assert side.is_busy
    assert not side.start([lambda: done.append(2)])
    gate.set()
    assert side.wait(30)
    assert done == [1]
    assert side.start([lambda: done.append(3)])
    assert side.wait(30)
    assert done == [1, 3]
