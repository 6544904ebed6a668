"""What operators do to a customer's job. Each act and its line in the audit log stand or fall together."""

from __future__ import annotations

import uuid

from django import forms
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.services.audit import record_act
from billing.models import Hold
from billing.services import holds
from billing.services.refunds import refund_job, refund_part
from portal.console.device_acts import reason_field
from portal.console.money_fields import MicrosField
from portal.lib.errors import Conflict, NotFound
from tts.models import SynthesisJob
from tts.services import wakeups
from tts.services.jobs import cancel_job
from tts.states import JOB_ENDED

OBJECT_KIND = "job"


class JobActForm(forms.Form):
    reason = reason_field()


class RefundForm(forms.Form):
    """How much (nothing: all that is left), why, and the form's own name: sent twice, it gives back once."""

    amount = MicrosField(
        label=_("Amount"), required=False, help_text=_("Empty: all that it cost and was not given back yet.")
    )
    reason = reason_field()
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4, required=False)


def _job(job_id: uuid.UUID) -> SynthesisJob:
    job = SynthesisJob.objects.select_related("workspace").filter(pk=job_id).first()
    if job is None:
        raise NotFound
    return job


def _name(job: SynthesisJob) -> str:
    return f"{str(job.pk)[:8]} ({job.workspace.name})"


def cancel_for_operator(*, job_id: uuid.UUID, actor: User, reason: str) -> None:
    """Stop a customer's job as if the customer had: what was spoken is paid, the rest is given back.

    Raises:
        NotFound; JobNotFound: the customer deleted it; JobAlreadyEnded.
    """
    job = _job(job_id)
    with transaction.atomic():
        after = cancel_job(workspace=job.workspace, job_id=job_id)
        record_act(
            actor=actor,
            act="job.cancel",
            object_kind=OBJECT_KIND,
            object_id=job_id,
            object_name=_name(job),
            reason=reason,
            before={"state": job.state},
            after={"state": after.state},
        )
    # Once more, now that others can see it.
    wakeups.wake_job(job_id=job_id)


def refund_for_operator(
    *,
    job_id: uuid.UUID,
    actor: User,
    reason: str,
    amount_micros: int | None = None,
    idempotency_key: str = "",
) -> int:
    """Give back what an ended job cost, or `amount_micros` of it under a key; returns the micros, 0 when that key was
    used before. Locks the credit account, then the job.

    Raises:
        NotFound; Conflict: the job has not ended, cost nothing, or was refunded before.
        RefundTooHigh: that is more than is left of what it cost.
    """
    job = _job(job_id)
    with transaction.atomic():
        holds.lock_account(workspace_id=job.workspace_id)
        locked = SynthesisJob.objects.select_for_update(no_key=True).get(pk=job_id)
        # One that only used again what was spoken before held nothing.
        if locked.state not in JOB_ENDED or not Hold.objects.filter(job_id=job_id).exists():
            raise Conflict
        if amount_micros is None:
            refunded_micros = refund_job(job_id=job_id)
            if not refunded_micros:
                raise Conflict
        elif refund_part(
            job_id=job_id, amount_micros=amount_micros, idempotency_key=idempotency_key, reason=reason
        ):
            refunded_micros = amount_micros
        else:
            return 0
        hold = Hold.objects.get(job_id=job_id)
        left_micros = hold.captured_micros - hold.refunded_micros
        SynthesisJob.objects.filter(pk=job_id).update(charged_micros=left_micros)
        record_act(
            actor=actor,
            act="job.refund",
            object_kind=OBJECT_KIND,
            object_id=job_id,
            object_name=_name(job),
            reason=reason,
            before={"charged_micros": locked.charged_micros},
            after={"charged_micros": left_micros, "refunded_micros": refunded_micros},
        )
    wakeups.wake_job(job_id=job_id)
    return refunded_micros
