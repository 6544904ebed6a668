"""The receipt of a job says by which seeds it was spoken, and what nobody pays for."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from tests.factories import finish_job, make_job
from tts.models import Attempt, Voice


def test_another_seed_and_what_it_discarded_are_on_the_receipt(
    alice: User, alice_client: Client, alice_workspace: Workspace
) -> None:
    voice = Voice.objects.filter(kind="preset").order_by("pk")[0]
    job = make_job(alice_workspace, alice, voice, seed=1234567)
    finish_job(job)
    address = reverse("job", args=[job.pk])
    Attempt.objects.filter(job=job).update(seed=1234567)
    page = alice_client.get(address).content.decode()
    assert "<dd>1234567</dd>" in page
    assert "Spoken again" not in page
    Attempt.objects.filter(job=job).update(seed=1234568, discarded_gpu_ms=4321)
    page = alice_client.get(address).content.decode()
    assert "<dd>1234567, 1234568</dd>" in page
    assert "Spoken again, not charged</dt><dd>4,321 ms" in page
