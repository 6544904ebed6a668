"""How an attempt that cost its device the engine ends: the segment is tried elsewhere, or given up as poison."""

from __future__ import annotations

from django.db import transaction

from tts.models import Segment
from tts.services import blame, health
from tts.services.attempts import Work, fail_attempt


def _whole_text(work: Work) -> str:
    """The segment's text as it was submitted, also where a part of it has been spoken and this is the rest."""
    parts = Segment.objects.filter(job=work.job, index=work.segment.index).order_by("part")
    return "".join(parts.values_list("text", flat=True))


def fail_with_engine(*, work: Work, error_code: str, error_detail: str, gpu_ms: int) -> bool:
    """Settle an attempt during which the engine died, hung or ran out of memory; nothing is charged for it.

    `error_code` is one of `blame.KILLING_CODES`. The segment is queued again, or its job fails as `poison_text` and
    its text is blocked for a day. The device has a strike; True when it is quarantined for it.

    Raises Fenced, having changed nothing, when the attempt is not the live one any more.
    """
    attempt = work.attempt
    poison = blame.is_poison(segment=work.segment, device_id=attempt.device_id)
    with transaction.atomic():
        fail_attempt(
            work=work,
            error_code=error_code,
            error_detail=error_detail,
            gpu_ms=gpu_ms,
            blame_user=False,
            give_up_as=blame.POISON_TEXT if poison else "",
        )
        if poison:
            blame.block_text(text=_whole_text(work))
    return health.strike(
        device_id=attempt.device_id,
        epoch=attempt.epoch,
        slot_number=attempt.slot_number,
        detail=f"{error_code}: {error_detail}",
        attempt_id=attempt.pk,
    )
