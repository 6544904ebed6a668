"""Why a device is in its state, in words. The pool writes a code or a short English text; an operator's own
words stay.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tts.services.health import DRAINED
from tts.services.node_state import MEMORY_LOW, NOT_FOUND

REASONS: Final[dict[str, str | Promise]] = {
    DRAINED: _("Drained: it rests until somebody resumes it."),
    MEMORY_LOW: _("Too little of its memory is free to start a worker."),
    NOT_FOUND: _("Its host does not find it any more."),
    "agent_silent": _("Its agent was not heard of for too long."),
    "agent_stopped": _("Its agent was stopped."),
    "an engine process could not be ended": _("An engine process could not be ended."),
}
_STRIKES: Final = re.compile(r"(\d+) strikes in ([\d.]+) minutes")
_CANARY: Final = re.compile(r"the test sentence failed (\d+) times")


def reason_text(reason: str) -> str:
    """The reason in the reader's language where it is the pool's own."""
    if reason in REASONS:
        return str(REASONS[reason])
    if match := _STRIKES.fullmatch(reason):
        return gettext("%(count)s engines were lost within %(minutes)s minutes.") % {
            "count": match[1],
            "minutes": match[2],
        }
    if match := _CANARY.fullmatch(reason):
        return gettext("The test sentence failed %(count)s times.") % {"count": match[1]}
    return reason
