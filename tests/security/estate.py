"""What alice has, for others to reach for; and ids that nobody has."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, timedelta

from accounts.models import ApiKey, User, Workspace
from billing.models import BudgetScope, Payment, PaymentMethod, PaymentPurpose, PlanChange
from billing.services.budgets import set_budget
from billing.services.invoices import close_month
from portal.lib.clock import now
from tests.billing.speech import plan
from tests.cast import api_of
from tests.factories import finish_job, make_job, make_voice
from tests.pages.money import used
from tests.webhooks.rows import happened, make_endpoint
from tts.models import SynthesisJob, Voice
from tts.states import VoiceState


@dataclass(frozen=True)
class Estate:
    """What alice has: ids for the addresses, words that nobody else may read, files that must stay."""

    ids: dict[str, object]
    team: Workspace
    words: tuple[str, ...]
    files: tuple[str, ...]


def make_estate(
    alice: User, alice_workspace: Workspace, alices_voice: Voice, alices_job: SynthesisJob, team: Workspace
) -> Estate:
    """One row of everything that addresses name, a job that waits among them and one that is done."""
    draft = make_voice(alice_workspace, alice, name="Alice's draft", state=VoiceState.DRAFT)
    done = make_job(alice_workspace, alice, alices_voice, text="What only Alice may hear.")
    finish_job(done)
    api_of(alice)
    key = ApiKey.objects.get()
    budget = set_budget(
        workspace_id=alice_workspace.pk,
        scope=BudgetScope.API_KEY,
        subject_id=key.pk,
        monthly_micros=10_000_000_000,
    )
    paid = Payment.objects.create(
        workspace_id=alice_workspace.pk,
        provider="test",
        purpose=PaymentPurpose.TOP_UP,
        currency="CNY",
        amount_micros=10_000_000_000,
        idempotency_key="estate",
    )
    method = PaymentMethod.objects.create(
        workspace_id=alice_workspace.pk,
        provider="test",
        provider_customer="alice",
        provider_reference="alice-card",
        label="Alice card 4242",
    )
    month_of_invoice = (now() - timedelta(days=40)).date()
    used(alice_workspace.pk, month_of_invoice)
    invoice = close_month(workspace_id=alice_workspace.pk, month=month_of_invoice)
    assert invoice is not None
    change = PlanChange.objects.create(
        workspace_id=alice_workspace.pk, plan_version=plan(0), first_day=date(9000, 1, 1)
    )
    endpoint, _secret = make_endpoint(alice_workspace, "https://alice-hooks.example/private")
    happened(alice_workspace)
    delivery = endpoint.deliveries.get()
    return Estate(
        ids={
            "endpoint_id": endpoint.pk,
            "delivery_id": delivery.pk,
            "invoice_id": invoice.pk,
            "change_id": change.pk,
            "payment_id": paid.pk,
            "method_id": method.pk,
            "voice_id": alices_voice.pk,
            "draft_id": draft.pk,
            "job_id": done.pk,
            "key_id": key.pk,
            "budget_id": budget.pk,
            "workspace_id": alice_workspace.pk,
            "act_id": uuid.uuid4(),
            "batch_id": uuid.uuid4(),
        },
        team=team,
        words=(
            "only Alice may",
            "Alice's voice",
            "Alice&#x27;s voice",
            "Alice&#x27;s draft",
            str(draft.pk),
            "Alice card 4242",
            "alice-hooks.example",
            "Alice's own words",
            "alice@example.com",
            "Alice and Bob",
            str(alice_workspace.pk),
            str(team.pk),
            str(alices_job.pk),
            key.prefix,
            *[str(attempt.pk) for attempt in done.attempts.all()],
        ),
        files=(alices_voice.clip_key, draft.clip_key, done.audio_key),
    )


def missing(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, name)


MISSING: dict[str, object] = {
    name: missing(name)
    for name in (
        "voice_id",
        "draft_id",
        "job_id",
        "key_id",
        "budget_id",
        "workspace_id",
        "act_id",
        "batch_id",
        "payment_id",
        "method_id",
        "invoice_id",
        "change_id",
        "endpoint_id",
        "delivery_id",
    )
}
