"""Why entries of a workspace's pronunciations are refused, with the place of each mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError
from tts.text.errors import annotation_hint, annotation_reason
from tts.text.pronunciation import MAX_REPLACEMENT_CHARACTERS, MAX_WORD_CHARACTERS, EntryFault
from tts.text.pronunciation import Fault as EntryProblem

ENTRY_PROBLEMS: dict[EntryProblem, str | Promise] = {
    EntryProblem.WORD_EMPTY: _("there is no word"),
    EntryProblem.WORD_TOO_LONG: format_lazy(
        _("a word has at most {limit} characters"), limit=MAX_WORD_CHARACTERS
    ),
    EntryProblem.WORD_ANNOTATED: _("a word holds no annotation; write how it is said on the other side"),
    EntryProblem.WORD_TWICE: _("this word is there twice; remove one of the two"),
    EntryProblem.REPLACEMENT_EMPTY: _("there is nothing to say for this word"),
    EntryProblem.REPLACEMENT_TOO_LONG: format_lazy(
        _("what is said has at most {limit} characters"), limit=MAX_REPLACEMENT_CHARACTERS
    ),
    EntryProblem.REPLACEMENT_TAG: _("tags are not allowed here; remove them"),
    EntryProblem.REPLACEMENT_BRACKET: _(
        "what stands in brackets is no annotation; write one, such as [hào], or remove the brackets"
    ),
}


class PronunciationInvalid(DomainError):
    """Entries of a workspace's pronunciations that cannot be kept; see `tts.text.pronunciation` for the rule."""

    code = "pronunciation_invalid"
    field = "entries"
    message = _("Entry %(number)s, characters %(first)s to %(last)s: %(reason)s.%(hint)s")

    def __init__(self, *, faults: Sequence[EntryFault]) -> None:
        first = faults[0]
        self.faults = list(faults)
        super().__init__(
            number=first.index + 1,
            first=first.start + 1,
            last=first.end,
            reason=entry_reason(first),
            hint=annotation_hint(first.mistake) if first.mistake else "",
        )

    def details(self) -> dict[str, Any]:
        """`mistakes`, the first of each entry at fault: `index` from 0, `side` ("word" or "replacement"), `problem`,
        `start` and `end` in it, `message`, `suggestion`."""
        return {
            "mistakes": [
                {
                    "index": fault.index,
                    "side": "word" if fault.in_word else "replacement",
                    "problem": fault.mistake.problem.value if fault.mistake else fault.fault.value,
                    "start": fault.start,
                    "end": fault.end,
                    "message": str(entry_reason(fault)),
                    "suggestion": fault.mistake.suggestion if fault.mistake else "",
                }
                for fault in self.faults
            ]
        }


def entry_reason(fault: EntryFault) -> str | Promise:
    """Why an entry cannot be kept, in words."""
    if fault.mistake is not None:
        return annotation_reason(fault.mistake)
    return ENTRY_PROBLEMS[fault.fault]
