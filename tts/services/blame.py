"""Whose fault a device's death was: strikes of segments, texts that kill devices.

A segment's strikes are its own attempts that ended a device's engine; nothing is stored beside them. When the
segment is spoken elsewhere they mean nothing any more; the device's strikes (tts.services.health) stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta

from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from tts.models import Attempt, Segment
from tts.models.operations import PoisonText
from tts.selectors.devices import ready_devices
from tts.states import MAX_ATTEMPTS

# Ends of attempts that cost a device its engine process.
KILLING_CODES = ("engine_died", "engine_hung_no_progress", "engine_hung_deadline", "gpu_oom")
# A segment that killed this many different devices is not tried on a third; where there is only one device, it
# is not tried again after as many kills on that one. The setting exists for tests that kill engines at random.
POISON_KILLS = int(os.environ.get("VOICEPOOL_POISON_KILLS", "2"))
POISON_HOURS = 24
# The code of the job that such a segment ends.
POISON_TEXT = "poison_text"


def is_poison(*, segment: Segment, device_id: int) -> bool:
    """Whether a segment that has just killed this device's engine, in an attempt not settled yet, is to be given up.

    It is when it killed two different devices, or this one twice and there is no other that takes work, or any as
    often as a segment is tried.
    """
    killed = list(
        Attempt.objects.filter(segment=segment, error_code__in=KILLING_CODES).values_list(
            "device_id", flat=True
        )
    )
    killed.append(device_id)
    if len(set(killed)) >= POISON_KILLS or len(killed) >= max(POISON_KILLS, MAX_ATTEMPTS):
        return True
    return len(killed) >= POISON_KILLS and not ready_devices().exclude(pk__in=killed).exists()


def block_text(*, text: str) -> None:
    """Refuse this segment's text for a day. Only its digest is kept; nothing is done for a text that is gone."""
    if not text:
        return
    until = Now() + timedelta(hours=POISON_HOURS)
    PoisonText.objects.update_or_create(text_digest=_digest(text), defaults={"blocked_until": until})


def is_any_blocked(texts: Iterable[str]) -> bool:
    """Whether one of these segments' texts killed devices within the last day."""
    digests = [_digest(text) for text in texts]
    return PoisonText.objects.filter(text_digest__in=digests, blocked_until__gt=Now()).exists()


def forget_ended_blocks() -> int:
    """Delete what is not blocked any more: nothing of a customer's text stays longer than it is of use."""
    deleted, _ = PoisonText.objects.filter(blocked_until__lte=Now()).delete()
    return deleted


def _digest(text: str) -> str:
    """Keyed, as the digest of a short text tells the text to whoever tries all of them."""
    return salted_hmac("tts.services.blame", text, algorithm="sha256").hexdigest()
