"""Why a text is refused. Every refusal has a stable code, and none repeats what was typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError
from tts.languages import language_name
from tts.text.annotation_inventory import ARPABET, SOUNDS, SPANS
from tts.text.annotations import Mistake, Problem
from tts.text.characters import Script
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_LONG_JOB_CHARACTERS
from tts.text.ssml import Fault

SCRIPT_NAMES: dict[Script, str | Promise] = {
    Script.HAN: _("Chinese characters"),
    Script.KANA: _("Japanese kana"),
    Script.HANGUL: _("Korean letters"),
    Script.BOPOMOFO: _("Bopomofo letters"),
    Script.LATIN: _("Latin letters"),
    Script.CYRILLIC: _("Cyrillic letters"),
    Script.GREEK: _("Greek letters"),
    Script.ARABIC: _("Arabic letters"),
    Script.HEBREW: _("Hebrew letters"),
    Script.DEVANAGARI: _("Devanagari letters"),
    Script.THAI: _("Thai letters"),
    Script.OTHER: _("letters of another script"),
}

# Why an annotation is refused, and what is allowed in its place.
ANNOTATION_PROBLEMS: dict[Problem, str | Promise] = {
    Problem.PINYIN: _("this is no Mandarin syllable with a tone, such as [hào], [hao4] or [h][ào]"),
    Problem.ARPABET: _("this is no ARPAbet phoneme, such as [R], [IH1] or [ER0]"),
    Problem.SOUND: _("there is no such sound"),
    Problem.PAUSE: _("a pause lasts at most 10 seconds"),
    Problem.TAG: _("there is no such tag"),
    Problem.NOT_CLOSED: _("this tag is not closed"),
    Problem.NOT_OPENED: _("this tag closes nothing"),
    Problem.EMPTY: _("there is nothing between these tags"),
    Problem.TOO_LONG: _("there are more than 60 characters between these tags"),
    Problem.WORD_TOO_LONG: _("this word has more than 24 phonemes; put spaces between words"),
}
_ALLOWED: dict[Problem, list[str]] = {
    Problem.PINYIN: ["[hào]", "[hao4]", "[h][ào]"],
    Problem.ARPABET: [f"[{phoneme}]" for phoneme in sorted(ARPABET)],
    Problem.SOUND: [f"[{sound}]" for sound in sorted(SOUNDS)],
    Problem.PAUSE: ["[pause 500ms]", "[pause 1.5s]"],
    Problem.TAG: [f"<{name}>" for name in sorted(SPANS)],
}


class TextRefused(DomainError):
    """A text that cannot be spoken as it is. Nothing was charged."""

    field = "text"


class TextEmpty(TextRefused):
    code = "text_empty"
    message = _("There is no text. Type something to speak.")


class TextUnspeakable(TextRefused):
    """Punctuation, symbols or emoji only: an engine would answer with silence or noise."""

    code = "text_unspeakable"
    message = _("There is nothing in this text that can be spoken: it has no letters and no digits.")


class TextTooLong(TextRefused):
    code = "text_too_long"
    message = _("The text has %(characters)s characters; %(limit)s are allowed. Split it into several jobs.")

    def __init__(self, *, characters: int, limit: int, **params: Any) -> None:
        super().__init__(characters=characters, limit=limit, **params)


class TextTooLongToWaitFor(TextTooLong):
    """Same code: in another class of urgency it may be as long."""

    message = _(
        "The text has %(characters)s characters; %(limit)s are allowed in the class Interactive. "
        "Take Standard or Batch, which allow %(longest)s."
    )

    def __init__(self, *, characters: int, limit: int) -> None:
        super().__init__(characters=characters, limit=limit, longest=MAX_LONG_JOB_CHARACTERS)


class SentenceTooLong(TextTooLong):
    """Same code: of what a voice says before it is saved."""

    message = _("A test sentence has at most %(limit)s characters; this one has %(characters)s.")


def too_long(*, characters: int, limit: int) -> TextTooLong:
    """The refusal of a text that has more characters than are allowed."""
    if limit == MAX_JOB_CHARACTERS and characters <= MAX_LONG_JOB_CHARACTERS:
        return TextTooLongToWaitFor(characters=characters, limit=limit)
    return TextTooLong(characters=characters, limit=limit)


class TextTooManyParts(TextRefused):
    """Each turn and each piece that one device speaks is a part."""

    code = "text_too_many_parts"
    message = _("The text has %(parts)s parts; %(limit)s are allowed in one job. Split it into several jobs.")


class SpeechTooLong(TextRefused):
    """More than one file can hold."""

    code = "speech_too_long"
    message = _(
        "This would become %(hours)s hours of speech; %(limit_hours)s are allowed in one job. "
        "Split the text into several jobs."
    )


class TooManySpeakers(TextRefused):
    code = "too_many_speakers"
    message = _(
        "The script has %(speakers)s speakers; %(limit)s are allowed. A name is what stands before a colon at the "
        "beginning of a line."
    )


class _TextRefusedAt(TextRefused):
    """`position` counts Unicode code points of the text as it was sent, from 0; people are told it from 1."""

    def __init__(self, *, position: int, **params: Any) -> None:
        super().__init__(position=position, number=position + 1, **params)


class TextControlCharacter(_TextRefusedAt):
    code = "text_control_characters"
    message = _("Character number %(number)s of the text is a control character. Remove it.")


class TextLoneSurrogate(_TextRefusedAt):
    code = "text_lone_surrogate"
    message = _("Character number %(number)s of the text is only half of one. Send valid Unicode.")


class LanguageNotSupported(TextRefused):
    """The engine does not speak the language that was asked for."""

    code = "language_not_supported"
    message = _("This language cannot be spoken yet. These can: %(languages)s.")

    def __init__(self, *, supported_languages: Sequence[str], **params: Any) -> None:
        names = [language_name(code) or code for code in supported_languages]
        super().__init__(languages=format_lazy(", ".join(["{}"] * len(names)), *names), **params)


class ScriptNotSupported(LanguageNotSupported):
    """Same code: the text is written in something that none of the engine's languages is written in."""

    message = _(
        "The text contains %(script_name)s (the first is character number %(number)s), which cannot be "
        "spoken yet. "
        "These languages can: %(languages)s."
    )

    def __init__(self, *, script: Script, position: int, supported_languages: Sequence[str]) -> None:
        super().__init__(
            supported_languages=supported_languages,
            script=script.value,
            script_name=SCRIPT_NAMES[script],
            position=position,
            number=position + 1,
        )


SSML_FAULTS: dict[Fault, str | Promise] = {
    Fault.TAG: _("this sign begins no tag; write &lt; for it"),
    Fault.NOT_CLOSED: _("this tag is not closed"),
    Fault.NOT_OPENED: _("this tag closes nothing"),
    Fault.CROSSED: _("another tag has to be closed before this one"),
    Fault.ENTITY: _("there is no such entity"),
    Fault.DOCUMENT_TYPE: _("a document type is not allowed"),
    Fault.AFTER_END: _("nothing may follow the end of the document"),
}


class SsmlInvalid(TextRefused):
    """An SSML document that is not well-formed; see `tts.text.markup` for the rule."""

    code = "ssml_invalid"
    message = _("This is no well-formed SSML. Characters %(first)s to %(last)s of the text: %(reason)s.")

    def __init__(self, *, fault: Fault, start: int, end: int) -> None:
        self._mistake: dict[str, Any] = {
            "problem": fault.value,
            "start": start,
            "end": end,
            "allowed": [],
            "suggestion": "",
        }
        self._reason = SSML_FAULTS[fault]
        super().__init__(first=start + 1, last=end, reason=self._reason)

    def details(self) -> dict[str, Any]:
        """`mistakes`, of which there is one: as those of AnnotationInvalid."""
        return {"mistakes": [{**self._mistake, "message": str(self._reason)}]}


class AnnotationInvalid(TextRefused):
    """Annotations that were certainly meant as such, but say nothing; see `tts.text.annotations` for the rule."""

    code = "annotation_invalid"
    message = _("Characters %(first)s to %(last)s of the text: %(reason)s.%(hint)s")

    def __init__(self, *, mistakes: Sequence[Mistake]) -> None:
        first = mistakes[0]
        self.mistakes = list(mistakes)
        hint: str | Promise = ""
        if first.suggestion:
            hint = format_lazy(_(" Did you mean {suggestion}?"), suggestion=first.suggestion)
        super().__init__(
            first=first.start + 1, last=first.end, reason=ANNOTATION_PROBLEMS[first.problem], hint=hint
        )

    def details(self) -> dict[str, Any]:
        """`mistakes`, each with `problem`, `start` and `end` (from 0, as the text was sent; the end is not part of it),

        `message`, what is `allowed`, and a `suggestion`.
        """
        return {
            "mistakes": [
                {
                    "problem": mistake.problem.value,
                    "start": mistake.start,
                    "end": mistake.end,
                    "message": str(ANNOTATION_PROBLEMS[mistake.problem]),
                    "allowed": _ALLOWED.get(mistake.problem, []),
                    "suggestion": mistake.suggestion,
                }
                for mistake in self.mistakes
            ]
        }
