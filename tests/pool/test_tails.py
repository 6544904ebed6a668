"""One reader of Redis for all that listen in a process: every follower gets every entry, once, in order."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest

from portal.lib.queues import redis_connection
from tests.pool.processes import wait_for
from tts.services.tails import WAITING_AT_MOST, Tail, Tails

LONG_S = 20.0


@pytest.fixture
def tails() -> Iterator[Tails]:
    made = Tails()
    yield made
    wait_for(lambda: readers() == 0, what="the reader to end when nothing is followed")


@pytest.fixture
def key() -> str:
    return f"test:{uuid.uuid4()}"


def readers() -> int:
    return sum(thread.name == "tails" for thread in threading.enumerate())


def say(key: str, *numbers: int) -> None:
    for number in numbers:
        redis_connection().xadd(key, {"number": str(number)})


def wait_for_another_moment() -> None:
    """Redis names entries by the millisecond: two streams of one key that begin in the same one name theirs alike."""
    before = redis_connection().time()
    wait_for(lambda: redis_connection().time() > (before[0], before[1] + 1000), what="another millisecond")


def heard(tail: Tail, count: int) -> list[int]:
    """The next so many numbers."""
    numbers: list[int] = []
    while len(numbers) < count:
        entries = tail.wait(LONG_S)
        assert entries, f"heard {numbers} and no more"
        numbers += [int(fields[b"number"]) for _, fields in entries]
    return numbers


def test_what_was_said_before_and_what_is_said_later_comes_once_and_in_order(tails: Tails, key: str) -> None:
    say(key, 1, 2)
    with tails.follow(key) as tail:
        assert heard(tail, 2) == [1, 2]
        say(key, 3)
        assert heard(tail, 1) == [3]
        assert tail.wait(0) == []


def test_one_who_comes_later_hears_it_from_the_beginning_and_one_who_asks_only_what_is_new(
    tails: Tails, key: str
) -> None:
    say(key, 1, 2)
    with tails.follow(key) as first:
        assert heard(first, 2) == [1, 2]
        with tails.follow(key) as second, tails.follow(key, after=tails.last_of(key)) as third:
            say(key, 3)
            assert heard(second, 3) == [1, 2, 3]
            assert heard(first, 1) == heard(third, 1) == [3]
            assert readers() == 1


def test_another_stream_is_followed_while_the_reader_waits_at_the_first(tails: Tails, key: str) -> None:
    other = f"{key}:other"
    with tails.follow(key) as tail:
        say(key, 1)
        assert heard(tail, 1) == [1]
        with tails.follow(other) as newcomer:
            say(other, 7)
            assert heard(newcomer, 1) == [7]
        say(key, 2)
        assert heard(tail, 1) == [2]


def test_one_who_does_not_keep_up_piles_up_nothing_and_misses_nothing(tails: Tails, key: str) -> None:
    many = list(range(5 * WAITING_AT_MOST))
    with tails.follow(key) as slow, tails.follow(key) as quick:
        for number in many:
            say(key, number)
            assert heard(quick, 1) == [number]
        assert slow.waiting.qsize() <= WAITING_AT_MOST + 1
        assert heard(slow, len(many)) == many
        say(key, 10_000)
        assert heard(slow, 1) == heard(quick, 1) == [10_000]


def test_a_stream_that_is_emptied_goes_on(tails: Tails, key: str) -> None:
    with tails.follow(key) as tail:
        say(key, 1)
        assert heard(tail, 1) == [1]
        redis_connection().delete(key)
        wait_for_another_moment()
        say(key, 2)
        assert heard(tail, 1) == [2]


def test_one_who_is_gone_is_handed_nothing(tails: Tails, key: str) -> None:
    with tails.follow(key) as stays:
        with tails.follow(key) as goes:
            say(key, 1)
            assert heard(goes, 1) == heard(stays, 1) == [1]
        goes.close()  # twice is no harm
        say(key, 2)
        assert heard(stays, 1) == [2]
        assert goes.wait(0) == []
