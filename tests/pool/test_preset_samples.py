from __future__ import annotations

import pytest

from accounts.models import User, Workspace
from billing.models import CreditAccount
from tests.pool.conftest import make_device
from tests.pool.test_attempts import assert_books_balance, claim_next, spoken
from tts import storage
from tts.engine.catalogue import PRESET_VOICES
from tts.models import Attempt, SynthesisJob
from tts.services.attempts import finish_attempt
from tts.services.preset_samples import ensure_preset_samples
from tts.services.sweep import sweep


@pytest.fixture
def no_samples() -> None:
    for preset in PRESET_VOICES:
        storage.delete(storage.preset_sample_key(preset.key))


def test_each_preset_voice_speaks_one_sample_at_nobodys_cost(customer: User, no_samples: None) -> None:
    ensure_preset_samples()
    assert SynthesisJob.objects.count() == 0, "no device takes work yet"
    make_device()
    ensure_preset_samples()
    ensure_preset_samples()
    assert SynthesisJob.objects.count() == len(PRESET_VOICES)
    while Attempt.objects.filter(state="bound").exists():
        work = claim_next()
        assert work.job.job_class == "batch"
        finish_attempt(work=work, outcome=spoken(work))
        sweep()
    ensure_preset_samples()
    assert all(storage.size_of(storage.preset_sample_key(preset.key)) > 44 for preset in PRESET_VOICES)
    ensure_preset_samples()
    assert SynthesisJob.objects.count() == len(PRESET_VOICES)
    customers = Workspace.objects.get(memberships__user=customer)
    assert CreditAccount.objects.get(workspace_id=customers.pk).available_micros == 300 * 12_000
    assert_books_balance()
