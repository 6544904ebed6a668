"""What is kept of customers' texts beside the texts: digests with our key, and no longer than they are of use."""

from __future__ import annotations

import re
import uuid
from collections import Counter

import pytest
from django.db import connection
from django.test import override_settings
from django.urls import reverse
from psycopg.sql import SQL, Identifier

from accounts.models import User
from tests.cast import client_of
from tests.pool.conftest import Submit, make_device
from tests.pool.spoken_before import speak_all
from tts.errors import TextBlocked
from tts.models import PoisonText, SynthesisJob
from tts.services.blame import block_text, is_any_blocked
from tts.services.sweep import sweep_thoroughly

TEXT = "Nobody is to guess this."
DIGEST = re.compile(r"[0-9a-f]{32,128}")


def digests() -> Counter[str]:
    """Everything in any table that looks like a digest, and how often it is there."""
    found: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(SQL("SELECT to_jsonb(t)::text FROM {} t").format(Identifier(table)))
            for (row,) in cursor.fetchall():
                found.update(DIGEST.findall(row))
    return found


def leave_traces(customer: User, submit: Submit, token: uuid.UUID) -> None:
    """Whatever keeps something of a text: a job under a key, its phrase, an edit on the page, a block."""
    job = submit(TEXT, seed=7, idempotency_key=str(uuid.uuid4()))
    speak_all()
    edit = {"index": 0, "text": "Nor these words.", "token": str(token)}
    client_of(customer).post(reverse("job_revise", args=[job.pk]), edit)
    assert SynthesisJob.objects.filter(revision_of=job).count() == 1
    speak_all()
    block_text(text=TEXT)


def test_no_digest_is_made_without_our_key(customer: User, submit: Submit) -> None:
    """The same texts under two keys leave no digest that is the same: none can be found by trying texts."""
    make_device()
    token, left = uuid.uuid4(), []
    for key in ("one key of the two, which is no secret", "another key of the two, which is no secret"):
        before = digests()
        with override_settings(SECRET_KEY=key):
            leave_traces(customer, submit, token)
        left.append(digests() - before)
    # Of the requests and phrases of two jobs, of the edit, and of the block.
    assert all(len(each) >= 6 for each in left)
    assert not left[0].keys() & left[1].keys()


def test_a_block_is_gone_soon_after_its_end(submit: Submit) -> None:
    for text in (TEXT, "Another one."):
        block_text(text=text)
    block_text(text=TEXT)
    PoisonText.objects.filter(pk=PoisonText.objects.latest("pk").pk).update(
        blocked_until="2026-01-01T00:00:00Z"
    )
    assert sweep_thoroughly() == {"blocks_forgotten": 1}
    assert PoisonText.objects.count() == 1
    assert (is_any_blocked([TEXT]), is_any_blocked(["Another one."])) == (True, False)
    with pytest.raises(TextBlocked):
        submit(TEXT)
    assert not SynthesisJob.objects.exists()
