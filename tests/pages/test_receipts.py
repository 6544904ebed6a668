"""What a job's page says of its price where not every device costs the same."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User, Workspace
from billing.models import UsageRecord
from tests.cast import api_of
from tests.factories import finish_job
from tests.pages.reading import text_of
from tts.models import SynthesisJob

pytestmark = pytest.mark.django_db


def test_a_receipt_names_class_and_rate_of_each_try_where_they_differ(
    alice: User, alice_workspace: Workspace, alices_job: SynthesisJob, alice_client: Client
) -> None:
    finish_job(alices_job)
    attempt = alices_job.attempts.get()
    page = text_of(alice_client.get(reverse("job", args=[alices_job.pk])))
    assert "Class of device" not in page
    now = timezone.now()
    UsageRecord.objects.create(
        attempt_id=attempt.pk,
        job_id=alices_job.pk,
        workspace_id=alice_workspace.pk,
        voice_id=alices_job.voice_id,
        device_name="GPU-1",
        device_class="h200",
        job_class=alices_job.job_class,
        billable=True,
        gpu_ms=100,
        audio_ms=1000,
        characters=10,
        gpu_second_micros=90_000,
        charged_micros=50,
        rated_micros=50,
        started_at=now,
        finished_at=now,
    )
    page = text_of(alice_client.get(reverse("job", args=[alices_job.pk])))
    assert "Class of device Price of a GPU-second" in page
    assert "h200 CN¥0.09 " in page
    assert "by class of device, see the attempts" in page
    line = api_of(alice).get(f"/api/v1/jobs/{alices_job.pk}").json()["receipt"]["lines"][0]
    assert (line["device_class"], line["gpu_second"]["amount_micros"]) == ("h200", 90_000)
