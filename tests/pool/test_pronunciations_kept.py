"""A version of the pronunciations stays for as long as a job names it, also one that is being stored just now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import User, Workspace
from billing.models import Hold
from billing.services import holds
from tests.pool.conftest import Submit
from tests.pool.test_attempts import account
from tests.pool.test_claims import wait_until_blocked
from tts.errors import PronunciationVersionUnknown
from tts.models import PronunciationVersion, SynthesisJob
from tts.services import pronunciations
from tts.services.pronunciations import save_pronunciations
from tts.text.pronunciation import Entry

Save = Callable[[str], object]


@pytest.fixture
def save(workspace: Workspace, customer: User, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Save one word as the newest version; two versions are kept."""
    monkeypatch.setattr(pronunciations, "VERSIONS_KEPT", 2)
    return lambda word: save_pronunciations(
        workspace=workspace, user=customer, entries=[Entry(word, "x")], expected_number=None
    )


class Aside:
    """What runs on a connection of its own, beside the test."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self._act = act
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._act()
        except Exception as error:
            self.error = error
        finally:
            connection.close()

    def join(self) -> Any:
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        return self.result


def numbers() -> list[int]:
    return list(PronunciationVersion.objects.order_by("number").values_list("number", flat=True))


def test_what_a_job_that_is_being_stored_names_is_not_forgotten(save: Save, submit: Submit) -> None:
    save("a")
    with transaction.atomic():
        job = submit("Hello a.", pronunciation_version=1)
        # Somebody else's saves pass it over, and wait for nobody.
        saving = Aside(lambda: [save(word) for word in "bcd"])
        saving.join()
        assert saving.error is None
    assert (numbers(), job.pronunciation_version) == ([1, 3, 4], 1)
    save("e")
    assert numbers() == [1, 4, 5]


def test_a_job_whose_version_is_forgotten_while_it_is_priced_is_refused_and_holds_nothing(
    save: Save, submit: Submit, workspace: Workspace
) -> None:
    save("a")
    before = account(workspace)
    with transaction.atomic():
        # It has been priced, and waits to have its money held.
        holds.lock_account(workspace_id=workspace.pk)
        submitting = Aside(lambda: submit("Hello a.", pronunciation_version=1))
        wait_until_blocked()
        saving = Aside(lambda: [save(word) for word in "bcd"])
        saving.join()
        assert saving.error is None
    assert submitting.join() is None
    assert isinstance(submitting.error, PronunciationVersionUnknown)
    assert (numbers(), account(workspace)) == ([3, 4], before)
    assert not SynthesisJob.objects.exists()
    assert not Hold.objects.exists()


def test_a_job_waits_for_who_forgets_its_version_just_now(save: Save, submit: Submit) -> None:
    for word in "abc":
        save(word)
    # A job of the second version is not there yet when this save looks for jobs.
    with transaction.atomic():
        save("d")
        submitting = Aside(lambda: submit("Hello a.", pronunciation_version=2))
        wait_until_blocked()
        assert not SynthesisJob.objects.exists()
    submitting.join()
    assert isinstance(submitting.error, PronunciationVersionUnknown)
    assert not SynthesisJob.objects.exists()
    assert not Hold.objects.exists()
    assert submit("Hello a.", pronunciation_version=3).pronunciation_version == 3
