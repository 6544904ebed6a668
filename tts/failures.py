"""What a failed job's code means, in words for the customer: what happened, what it cost, what to do."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

FAILURES: dict[str, str | Promise] = {
    "engine_failed": _(
        "The engine failed three times. Nothing was charged. Try again; if it stays so, write to us."
    ),
    "poison_text": _(
        "This text made the engine fail on every device that tried it. Nothing was charged. Change the text; as it "
        "is, it is not taken again for a day."
    ),
    "budget_exhausted": _(
        "The money set aside was used up before the text was finished. What was spoken is kept and paid. "
        "Split the text and speak the rest."
    ),
    "language_not_supported": _(
        "The engine does not speak this language. Only what was spoken before is charged. Choose another text."
    ),
    "text_unspeakable": _(
        "A part of this text holds nothing that can be spoken. Only what was spoken before is charged."
    ),
    "text_needs_kana": _(
        "The engine reads Chinese characters as Chinese. Write Japanese in kana. "
        "Only what was spoken before is charged."
    ),
    "clip_too_short": _("The recording of this voice is shorter than a second. Record the voice again."),
    "clip_silent": _("The recording of this voice is silent. Record the voice again."),
    "remote_refused": _(
        "The speech server behind the pool refused this text or voice. Nothing was charged. Change the text or pick "
        "another voice."
    ),
    "voice_deleted": _(
        "The voice was deleted before all was spoken. Only what was spoken before is charged. Pick another voice."
    ),
}


def failure_text(code: str) -> str:
    """The message for a job's `error_code`, in the language that is active now; a general one for codes not listed."""
    return str(
        FAILURES.get(
            code, _("The job failed. Nothing was charged. Try again, or write to us with its number.")
        )
    )
